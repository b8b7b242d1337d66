// SPDX-License-Identifier: Apache-2.0
#include "tasks/vad.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "audio/read.hpp"
#include "formats/safetensors.hpp"
#include "tasks/fake_voice_model.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;

const std::string data = CONSONANT_TEST_DATA "/vad/";

VadOptions options_of(const nlohmann::json& o) {
  VadOptions options;
  const auto set = [&](const char* key, double& to, double scale) {
    if (o.contains(key)) to = o.at(key).get<double>() * scale;
  };
  set("threshold", options.threshold, 1);
  set("neg_threshold", options.neg_threshold, 1);
  set("min_silence_duration_ms", options.min_silence, 1e-3);
  set("min_speech_duration_ms", options.min_speech, 1e-3);
  set("speech_pad_ms", options.pad, 1e-3);
  set("max_speech_duration_s", options.max_speech, 1);
  return options;
}

TEST(SpeechSegmenter, FindsWhatTheReferenceFinds) {
  const auto golden = SafetensorsFile::open(data + "golden.safetensors");
  std::ifstream file(data + "segments.json");
  size_t cases = 0, found = 0;
  for (const auto& c : nlohmann::json::parse(file)) {
    const std::string name = c.at("probabilities");
    SCOPED_TRACE(name + " with " + c.at("options").dump());
    SpeechSegmenter segmenter(options_of(c.at("options")), 512);
    std::vector<SpeechPart> got, want;
    int64_t earliest = 0;
    const auto take = [&] {
      for (const SpeechPart& p : segmenter.take()) {
        EXPECT_GE(p.start, earliest);
        got.push_back(p);
      }
    };
    for (const float p : golden.tensor(name).to_floats()) {
      segmenter.add(p);
      take();
      EXPECT_GE(segmenter.earliest(), earliest);
      earliest = segmenter.earliest();
    }
    segmenter.finish(c.at("samples"));
    take();
    for (const auto& s : c.at("speech")) want.push_back({s.at(0), s.at(1)});
    EXPECT_EQ(got, want);
    ++cases, found += got.size();
  }
  EXPECT_EQ(cases, 80u);
  EXPECT_GT(found, 200u);
}

// Loud stretches of a constant, silence between them; lengths in windows.
std::vector<float> sound(const std::vector<std::pair<float, int64_t>>& stretches) {
  std::vector<float> samples;
  for (const auto& [level, windows] : stretches) samples.insert(samples.end(), size_t(windows * 512), level);
  return samples;
}

std::vector<float> read_all(AudioSource& source, size_t block) {
  std::vector<float> all, part(block);
  int64_t got = 0;
  do {
    got = source.read(part);
    all.insert(all.end(), part.begin(), part.begin() + got);
  } while (got == int64_t(block));
  return all;
}

TEST(SpeechOnlySource, GivesTheStretchesThatThereAre) {
  std::vector<float> samples = sound({{0, 100}, {1, 50}, {0, 300}, {2, 100}, {0, 20}, {3, 30}, {0, 500}, {4, 1}});
  samples.resize(samples.size() - 100);  // the last window isn't full
  FakeVoiceModel voice;
  const auto whole = audio_of_samples(samples, "sound");
  const auto parts = find_speech(voice, *whole, speech_for_windows());
  const int64_t pad = 6400;
  ASSERT_THAT(parts,
              ElementsAre(SpeechPart{100 * 512 - pad, 150 * 512 + pad}, SpeechPart{450 * 512 - pad, 600 * 512 + pad}));
  std::vector<float> want;
  for (const SpeechPart& p : parts) want.insert(want.end(), samples.begin() + p.start, samples.begin() + p.end);
  for (const size_t block : {1000, 512, 65536, 1 << 20}) {
    const auto source = audio_of_samples(samples, "sound");
    SpeechOnlySource speech(*source, voice);
    EXPECT_EQ(read_all(speech, block), want) << block;
    EXPECT_EQ(speech.taken(), int64_t(samples.size()));
  }
}

TEST(SpeechOnlySource, KnowsWhereItsSamplesWere) {
  const auto samples = sound({{0, 100}, {1, 50}, {0, 300}, {2, 100}, {0, 200}});
  const auto source = audio_of_samples(samples, "sound");
  FakeVoiceModel voice;
  SpeechOnlySource speech(*source, voice);
  const auto got = read_all(speech, 4096);
  const double first = double(100 * 512 - 6400) / 16000, length = double(50 * 512 + 2 * 6400) / 16000,
               second = double(450 * 512 - 6400) / 16000;
  ASSERT_EQ(got.size(), size_t(150 * 512 + 4 * 6400));
  EXPECT_DOUBLE_EQ(speech.start_time(0), first);
  EXPECT_DOUBLE_EQ(speech.start_time(1), first + 1);
  EXPECT_DOUBLE_EQ(speech.end_time(1), first + 1);
  EXPECT_DOUBLE_EQ(speech.end_time(length), first + length);
  EXPECT_DOUBLE_EQ(speech.start_time(length), second);
  EXPECT_DOUBLE_EQ(speech.end_time(length + 0.5), second + 0.5);
  EXPECT_THAT(speech.cuts(0, 100), ElementsAre(length));
  EXPECT_THAT(speech.cuts(0, length), ElementsAre());
  EXPECT_THAT(speech.cuts(length, 100), ElementsAre());
}

TEST(SpeechOnlySource, IsEmptyWithoutSpeech) {
  FakeVoiceModel voice;
  for (const int64_t windows : {0, 1, 64, 1000}) {
    const auto source = audio_of_samples(sound({{0, windows}}), "silence");
    SpeechOnlySource speech(*source, voice);
    EXPECT_TRUE(read_all(speech, 1000).empty());
    EXPECT_EQ(speech.taken(), windows * 512);
    EXPECT_EQ(speech.start_time(0), 0);
  }
}

// An hour of speech without a pause, or with pauses that are no cuts: all of it, and no more than about a minute held.
TEST(SpeechOnlySource, HoldsABoundedPartOfALongRecording) {
  class Endless final : public AudioSource {
   public:
    int64_t read(std::span<float> to) override {
      const auto n = std::min<int64_t>(int64_t(to.size()), int64_t{3600} * rate - read_);
      std::fill_n(to.begin(), n, 1.0f);
      read_ += n;
      return n;
    }
    int64_t length() const override { return -1; }
    const std::vector<std::string>& warnings() const override { return none_; }
    std::string name() const override { return "endless"; }
    int64_t read_ = 0;

   private:
    std::vector<std::string> none_;
  } source;
  FakeVoiceModel voice;
  SpeechOnlySource speech(source, voice);
  std::vector<float> block(16000);
  int64_t all = 0, most_ahead = 0;
  while (const int64_t got = speech.read(block)) {
    all += got;
    most_ahead = std::max(most_ahead, source.read_ - all);
  }
  EXPECT_EQ(all, int64_t{3600} * 16000);
  EXPECT_LT(most_ahead, 70 * 16000);
}

}  // namespace
}  // namespace consonant
