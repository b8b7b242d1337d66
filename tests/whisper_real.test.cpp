// SPDX-License-Identifier: Apache-2.0
// Real Whisper weights on real recordings, against the reference implementation in float32. Each test skips, by the
// folder's name, where the weights aren't at hand.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "audio/read.hpp"
#include "models/whisper_vocabulary.hpp"
#include "tasks/whisper_transcribe.hpp"
#include "tasks/whisper_window.hpp"
#include "tests/whisper_golden.hpp"

namespace consonant {
namespace {

struct RealWhisper : LoadedWhisper {
  Tokenizer tokenizer;
  WhisperVocabulary vocabulary;

  explicit RealWhisper(const std::string& path)
      : LoadedWhisper(path, exact()),
        tokenizer(Tokenizer::load(*file.meta)),
        vocabulary(whisper_vocabulary(*file.meta)) {}
  WhisperParts parts() { return {*runner, vocabulary, tokenizer}; }
};

std::string recording(const std::string& clip) { return CONSONANT_TEST_DATA "/audio/" + clip + ".wav"; }

// The one window of a clip of up to 30 s, and its margins.
std::vector<float> window_of(const std::string& clip, const WhisperRunner& runner) {
  std::vector<float> samples(static_cast<size_t>(runner.window_samples() + 2 * runner.margin_samples()));
  const auto margin = static_cast<size_t>(runner.margin_samples());
  read_audio(recording(clip))->read(std::span(samples).subspan(margin, static_cast<size_t>(runner.window_samples())));
  for (size_t i = 1; i <= margin; ++i) samples[margin - i] = samples[margin + i];
  return samples;
}

class RealSpeech : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto path = std::filesystem::path(CONSONANT_MODELS) / (std::string("whisper-") + GetParam());
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path.filename() << " is not in " << CONSONANT_MODELS;
    whisper.emplace(path.string());
    std::ifstream file(asr_data + "expected_" + GetParam() + ".json");
    expected = nlohmann::json::parse(file)["clips"];
  }
  Golden golden(const std::string& key) {
    return Golden(asr_data + "golden_" + GetParam() + "_" + key + ".safetensors");
  }
  bool has_golden(const std::string& key) {
    return std::filesystem::exists(asr_data + "golden_" + GetParam() + "_" + key + ".safetensors");
  }

  std::optional<RealWhisper> whisper;
  nlohmann::json expected;
};

TEST_P(RealSpeech, EncodesAsTheReference) {
  WhisperRunner& runner = *whisper->runner;
  for (const auto& [key, clip] : expected.items()) {
    if (!has_golden(key)) continue;
    SCOPED_TRACE(key);
    const Golden g = golden(key);
    float peak = -std::numeric_limits<float>::infinity();
    const int window = runner.encode(window_of(clip["clip"], runner), peak);
    const auto wanted = g.floats("encoder_out_first32");
    const auto width = static_cast<size_t>(whisper->model->width);
    const std::vector<float> encoded = runner.encoded();
    const Distance d = distance_of(wanted, std::span(encoded).first(wanted.size()), width);
    EXPECT_LE(d.max_abs, 2e-3);
    EXPECT_GE(d.worst_cosine, 0.99999);
    const auto norms = g.floats("encoder_out_norm");
    for (size_t r = 0; r < norms.size(); ++r) {
      double sum = 0;
      for (size_t i = 0; i < width; ++i) sum += std::pow(double{encoded[r * width + i]}, 2);
      ASSERT_NEAR(std::sqrt(sum), norms[r], 2e-3) << r;
    }
    const auto prompt = clip["prompt_no_timestamps"].get<std::vector<int32_t>>();
    const int sequence = runner.open(window);
    const WindowModel::Piece piece{sequence, prompt, 1};
    const auto first = g.floats("first_logits_no_timestamps");
    EXPECT_LE(distance_of(first, runner.evaluate({&piece, 1}), first.size()).max_abs, 5e-3);
    runner.close(sequence), runner.forget(window);
  }
}

TEST_P(RealSpeech, WritesTheReferencesTokens) {
  WhisperRunner& runner = *whisper->runner;
  WindowDecoder decoder(runner, whisper->vocabulary, whisper->tokenizer);
  for (const auto& [key, clip] : expected.items()) {
    SCOPED_TRACE(key);
    float peak = -std::numeric_limits<float>::infinity();
    const int window = runner.encode(window_of(clip["clip"], runner), peak);
    for (const bool timestamps : {false, true}) {
      const std::string end = timestamps ? "_timestamps" : "_no_timestamps";
      WindowSettings settings;
      settings.timestamps = timestamps, settings.beam = 1, settings.fallback = false;
      settings.translate = clip["task"] == "translate";
      const auto prompt = clip["prompt" + end].get<std::vector<int32_t>>();
      if (whisper->vocabulary.multilingual) settings.language = prompt[1];
      const WindowRequest request{window, {}};
      EXPECT_EQ(decoder.prompt(request, settings), prompt);
      const auto texts = decoder.decode({&request, 1}, settings, [] { return true; });
      ASSERT_TRUE(texts);
      const WindowText& text = texts->front();
      EXPECT_EQ(text.tokens, clip["ids" + end].get<std::vector<int32_t>>());
      EXPECT_TRUE(text.ended);
      EXPECT_NEAR(text.avg_logprob, clip[timestamps ? "avg_logprob_timestamps" : "avg_logprob"].get<double>(), 1e-3);
      if (!timestamps) {
        EXPECT_EQ(text.text, clip["text"].get<std::string>());
        EXPECT_NEAR(text.compression_ratio, clip["compression_ratio"].get<double>(), 0.02);
      }
      EXPECT_NEAR(text.no_speech_prob, clip["no_speech_prob"].get<double>(), 1e-3);
    }
    if (whisper->vocabulary.multilingual) {
      const auto languages = decoder.languages(window);
      for (const auto& [code, probability] : clip["language_top5"].items()) {
        const auto& known = whisper->vocabulary.languages;
        const auto at = static_cast<size_t>(std::find(known.begin(), known.end(), code) - known.begin());
        ASSERT_LT(at, languages.size());
        EXPECT_NEAR(languages[at], probability.get<double>(), 1e-3) << code;
      }
    }
    runner.forget(window);
  }
}

// 95% of the word starts within 20 ms, none off by more than 100 ms.
TEST_P(RealSpeech, TimesWordsAsTheReference) {
  size_t words = 0, near = 0;
  for (const auto& [key, clip] : expected.items()) {
    SCOPED_TRACE(key);
    if (clip["words"].empty()) continue;  // a translation's
    SpeechOptions options;
    options.language = clip["language_used"].is_string() ? clip["language_used"].get<std::string>() : "en";
    options.translate = clip["task"] == "translate";
    options.beam = 1, options.fallback = false, options.word_times = true;
    const auto source = read_audio(recording(clip["clip"]));
    const TimedTranscript transcript = transcribe_speech(whisper->parts(), *source, options);
    std::vector<TimedWord> made;
    for (const TimedSegment& s : transcript.segments) made.insert(made.end(), s.words.begin(), s.words.end());
    const auto& wanted = clip["words"];
    if (options.language == "ja") {  // the reference's script cuts at spaces only
      std::string all;
      for (const TimedWord& w : made) all += w.word;
      EXPECT_EQ(all, wanted[0]["word"].get<std::string>());
      EXPECT_NEAR(made.at(0).start, wanted[0]["start"].get<double>(), 0.02 + 1e-9);
      continue;
    }
    ASSERT_EQ(made.size(), wanted.size());
    for (size_t i = 0; i < made.size(); ++i, ++words) {
      EXPECT_EQ(made[i].word, wanted[i]["word"].get<std::string>());
      const double off = std::fabs(made[i].start - wanted[i]["start"].get<double>());
      EXPECT_LE(off, 0.1 + 1e-9) << made[i].word;
      near += off <= 0.02 + 1e-9;
      EXPECT_NEAR(made[i].probability, wanted[i]["p"].get<double>(), 2e-3) << made[i].word;
    }
  }
  EXPECT_GE(static_cast<double>(near), 0.95 * static_cast<double>(words));
}

INSTANTIATE_TEST_SUITE_P(All, RealSpeech, testing::Values("tiny.en", "base"),
                         [](const auto& info) { return info.param[0] == 't' ? "tiny_en" : "base"; });

}  // namespace
}  // namespace consonant
