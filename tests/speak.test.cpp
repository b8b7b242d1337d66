// SPDX-License-Identifier: Apache-2.0
// Text to sound through the public interface: what is said is what the reference says, whole or as it comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "consonant/speak.hpp"
#include "tests/tts_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

std::shared_ptr<Synthesizer> load(const std::string& path, const std::string& codec = "", const char* kind = nullptr) {
  EngineOptions options;
  options.device = "cpu", options.precision = "f32", options.threads = 2;
  if (kind) options.override_kv = {std::string("qwen3tts.tts_model_type=str:") + kind};
  return Synthesizer::load(path, codec, options);
}

SpeakOptions greedy(const TtsCase& c) {
  SpeakOptions options;
  options.text = c.text, options.language = c.language;
  options.speaker = c.speaker ? c.speaker : "";
  options.instruction = c.instruction ? c.instruction : "";
  options.sampling.temperature = 0;
  return options;
}

VoiceSample reference(bool with_text) {
  return {tts_golden("codec").floats("enc.wav"), with_text ? "I wanted to hear the sound of the sea." : ""};
}

struct Heard {
  SpeakResult result;
  std::vector<float> samples;
};

Heard speak(Synthesizer& synthesizer, const SpeakOptions& options) {
  Heard heard;
  SpeakCallbacks callbacks;
  callbacks.on_samples = [&](std::span<const float> samples) {
    heard.samples.insert(heard.samples.end(), samples.begin(), samples.end());
    return true;
  };
  heard.result = synthesizer.speak(options, callbacks);
  EXPECT_EQ(heard.result.samples, std::ssize(heard.samples));
  return heard;
}

TEST(Speak, ClonedVoicesSayTheReferencesCodes) {
  for (const std::string& path : {tts_folder(base_model), tts_gguf(base_model)}) {
    const auto synthesizer = load(path, path == tts_gguf(base_model) ? codec_gguf : "");
    EXPECT_TRUE(synthesizer->clones());
    EXPECT_EQ(synthesizer->rate(), 24000);
    const Golden golden = tts_golden(base_model);
    for (const TtsCase& c : {tts_cases(base_model)[0], tts_cases(base_model)[3]}) {
      SpeakOptions options = greedy(c);
      options.voice = reference(c.reference);
      const Heard heard = speak(*synthesizer, options);
      ASSERT_EQ(heard.result.sentences.size(), 1u);
      EXPECT_EQ(heard.result.sentences[0].codes, golden.ids(std::string(c.name) + ".codes")) << c.name;
      EXPECT_EQ(heard.result.stop_reason, StopReason::end_token);
      EXPECT_EQ(std::ssize(heard.samples), heard.result.sentences[0].frames * 1920);
    }
  }
}

TEST(Speak, SpeakersSayTheReferencesCodes) {
  const auto synthesizer = load(tts_folder(custom_model));
  const Golden golden = tts_golden(custom_model);
  for (const size_t i : {0, 1, 2}) {
    const TtsCase c = tts_cases(custom_model)[i];
    EXPECT_EQ(speak(*synthesizer, greedy(c)).result.sentences.at(0).codes, golden.ids(std::string(c.name) + ".codes"))
        << c.name;
  }
  const auto designer = load(tts_folder(custom_model), "", "voice_design");
  EXPECT_TRUE(designer->designs());
  EXPECT_EQ(speak(*designer, greedy(tts_cases(custom_model)[4])).result.sentences.at(0).codes, golden.ids("vd.codes"));
}

TEST(Speak, WhatStreamsIsWhatComesAtOnce) {
  const auto synthesizer = load(tts_folder(base_model));
  SpeakOptions options = greedy(tts_cases(base_model)[0]);
  options.voice = reference(true);
  options.text += " A second one! And a third.";
  options.max_frames = 70;
  const Heard whole = speak(*synthesizer, options);
  ASSERT_EQ(whole.result.sentences.size(), 3u);
  options.stream = true;
  const Heard streamed = speak(*synthesizer, options);
  ASSERT_EQ(streamed.samples.size(), whole.samples.size());
  for (size_t i = 0; i < whole.samples.size(); ++i) ASSERT_NEAR(streamed.samples[i], whole.samples[i], 1e-5) << i;
  int64_t frames = 0;
  for (const SpokenSentence& s : whole.result.sentences) frames += s.frames;
  EXPECT_EQ(std::ssize(whole.samples), frames * 1920 + 2 * 4800);
}

TEST(Speak, ASentenceThatMissesItsEndIsTriedAgainAndThenReported) {
  const auto synthesizer = load(tts_folder(custom_model));
  SpeakOptions options = greedy(tts_cases(custom_model)[0]);
  options.max_frames = 5;
  SpeakResult greedy_once = speak(*synthesizer, options).result;
  EXPECT_EQ(greedy_once.sentences.at(0).tries, 1) << "the same each time";
  options.sampling.temperature = 0.9f, options.sampling.seed = 10;
  std::vector<uint64_t> seeds;
  SpeakCallbacks callbacks;
  callbacks.on_retry = [&](const SpokenSentence& failed, int) { seeds.push_back(failed.seed); };
  const SpeakResult result = synthesizer->speak(options, callbacks);
  EXPECT_EQ(seeds, (std::vector<uint64_t>{10, 11}));
  const SpokenSentence& s = result.sentences.at(0);
  EXPECT_EQ(s.tries, 3);
  EXPECT_EQ(s.seed, 12u);
  EXPECT_EQ(s.frames, 5);
  EXPECT_EQ(s.bound, 5);
  EXPECT_EQ(exit_code(result.stop_reason), 5);
  EXPECT_FALSE(s.end_ranks.empty());
  EXPECT_EQ(result.samples, 5 * 1920) << "what there is";
}

TEST(Speak, WhatCannotBeSpokenIsRefused) {
  const auto cloner = load(tts_folder(base_model)), speakers = load(tts_folder(custom_model));
  const auto said = [](Synthesizer& synthesizer, const SpeakOptions& options, int code) {
    try {
      synthesizer.speak(options);
    } catch (const Error& error) {
      EXPECT_EQ(exit_code(error), code) << error.what();
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  SpeakOptions options;
  options.text = "... !";
  EXPECT_THAT(said(*speakers, options, 3), HasSubstr("nothing to say"));
  options.text = "Hello.";
  EXPECT_THAT(said(*cloner, options, 2), HasSubstr("recording"));
  options.speaker = "nobody";
  EXPECT_THAT(said(*speakers, options, 3), HasSubstr("aiden"));
  options.speaker.clear(), options.language = "klingon";
  EXPECT_THAT(said(*speakers, options, 3), HasSubstr("klingon"));
  options.language = "auto";
  options.voice = VoiceSample{std::vector<float>(24000), ""};
  EXPECT_THAT(said(*speakers, options, 2), HasSubstr("its own voices"));
  EXPECT_THAT(said(*cloner, options, 3), HasSubstr("silent"));
  options.voice->samples.assign(24000, 1e-5f);
  EXPECT_THAT(said(*cloner, options, 3), HasSubstr("quiet"));
  options.voice->samples.assign(24000, 1.0f);
  EXPECT_THAT(said(*cloner, options, 3), HasSubstr("full scale"));
  options.voice->samples.assign(2000, 0.1f);
  EXPECT_THAT(said(*cloner, options, 3), HasSubstr("0.08 s"));
  options.voice = reference(false), options.instruction = "Slowly.";
  EXPECT_THAT(said(*cloner, options, 2), HasSubstr("recording"));
}

}  // namespace
}  // namespace consonant
