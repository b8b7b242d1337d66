// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "audio/audio_source.hpp"
#include "models/whisper_vocabulary.hpp"
#include "tasks/window_model.hpp"
#include "text/test_vocabulary.hpp"
#include "text/tokenizer.hpp"

// A model for tests that does what a script says. Its text tokens are single bytes.
namespace consonant {

inline WhisperVocabulary fake_vocabulary(bool multilingual = true) {
  WhisperVocabulary v;
  v.multilingual = multilingual;
  v.end = 256, v.start = 257, v.first_language = 258;
  v.languages = {"en", "fr", "ja"};
  v.translate = 261, v.transcribe = 262, v.start_of_lm = 263, v.previous = 264, v.no_speech = 265;
  v.no_timestamps = 266, v.first_timestamp = 267;
  v.size = 267 + 1501;
  v.suppress = {'#', '*', 257, 261, 262, 263, 264, 265};
  v.suppress_at_begin = {' ', 256};
  v.text_positions = 448, v.audio_positions = 1500;
  return v;
}

inline Tokenizer fake_tokenizer() {
  // The metadata has to outlive the tokenizer.
  static const std::shared_ptr<Meta> meta = [] {
    std::vector<std::string> tokens;
    MetaInts types;
    for (int i = 0; i < 256; ++i)
      tokens.push_back(testing_text::byte_level(std::string(1, char(i)))), types.push_back(1);
    const WhisperVocabulary v = fake_vocabulary();
    for (int64_t i = 256; i < v.size; ++i) tokens.push_back("<|" + std::to_string(i) + "|>"), types.push_back(3);
    testing_text::MetaBuilder builder;
    builder.string("model", "gpt2").string("pre", "gpt-2").strings("tokens", tokens).integers("token_type", types);
    builder.strings("merges", {}).integer("eos_token_id", v.end);
    return builder.meta();
  }();
  return Tokenizer::load(*meta);
}

// Samples from memory.
class FakeSource : public AudioSource {
 public:
  explicit FakeSource(std::vector<float> samples) : samples_(std::move(samples)) {}
  int64_t read(std::span<float> to) override {
    const size_t count = std::min(to.size(), samples_.size() - at_);
    std::copy_n(samples_.begin() + static_cast<std::ptrdiff_t>(at_), count, to.begin());
    at_ += count;
    return static_cast<int64_t>(count);
  }
  int64_t length() const override { return static_cast<int64_t>(samples_.size()); }
  const std::vector<std::string>& warnings() const override { return warnings_; }
  std::string name() const override { return "fake.wav"; }

 private:
  std::vector<float> samples_;
  std::vector<std::string> warnings_;
  size_t at_ = 0;
};

class FakeWindowModel : public WindowModel {
 public:
  // What the sequences know when the logits of their last token are asked for.
  struct State {
    std::span<const float> samples;         // of the window, margins included
    std::span<const int32_t> prompt, text;  // up to the last control token before text; after it
    std::span<float> logits;                // all -20 at first
  };
  using Script = std::function<void(const State&)>;

  FakeWindowModel(WhisperVocabulary vocabulary, Script script, int64_t window = 480000, int64_t margin = 200)
      : v_(std::move(vocabulary)), script_(std::move(script)), window_(window), margin_(margin) {}
  ~FakeWindowModel() override {
    EXPECT_TRUE(sequences_.empty()) << sequences_.size() << " sequences were left open";
    EXPECT_TRUE(windows_.empty()) << windows_.size() << " windows were left";
  }

  int64_t window_samples() const override { return window_; }
  int64_t margin_samples() const override { return margin_; }

  int encode(std::span<const float> samples, float& peak) override {
    EXPECT_EQ(int64_t(samples.size()), window_ + 2 * margin_);
    for (const float x : samples) peak = std::max(peak, std::log10(std::max(1e-10f, x * x)));
    windows_[++last_] = {samples.begin(), samples.end()};
    most_windows = std::max(most_windows, windows_.size());
    ++encoded;
    return last_;
  }
  void forget(int window) override { EXPECT_EQ(windows_.erase(window), 1u); }

  int open(int window) override {
    EXPECT_TRUE(windows_.count(window));
    sequences_[++last_] = {window, {}};
    return last_;
  }
  int fork(int sequence) override {
    EXPECT_TRUE(sequences_.count(sequence));
    ++forks;
    sequences_[++last_] = sequences_.at(sequence);
    return last_;
  }
  void close(int sequence) override { EXPECT_EQ(sequences_.erase(sequence), 1u); }

  std::span<const float> evaluate(std::span<const Piece> pieces) override {
    ++steps;
    most_pieces = std::max(most_pieces, pieces.size());
    logits_.clear();
    std::set<int> seen;
    for (const Piece& p : pieces) {
      EXPECT_TRUE(seen.insert(p.sequence).second) << "a sequence twice in a step";
      Sequence& s = sequences_.at(p.sequence);
      EXPECT_TRUE(windows_.count(s.window));
      this->tokens += p.tokens.size();
      const size_t first = s.tokens.size() + p.tokens.size() - size_t(p.wanted);
      s.tokens.insert(s.tokens.end(), p.tokens.begin(), p.tokens.end());
      EXPECT_LE(int64_t(s.tokens.size()), v_.text_positions);
      for (size_t i = first; i < s.tokens.size(); ++i) answer(s, std::span(s.tokens).first(i + 1));
    }
    return logits_;
  }

  Alignment align(int window, std::span<const int32_t> tokens, int32_t) override {
    ++aligned;
    Alignment a;
    a.heads = 2, a.positions = window_ / 320;
    const size_t rows = tokens.size(), columns = size_t(a.positions);
    a.weights.assign(2 * rows * columns, 1e-4f);
    a.probability.assign(rows, 0.5f);
    a.probability.back() = 0;
    for (size_t h = 0; h < 2; ++h) {
      for (size_t r = 0; r < rows; ++r) {
        const auto at = static_cast<size_t>(align_at ? align_at(windows_.at(window), r, rows) : double(r) * 10);
        for (size_t c = at; c < std::min(columns, at + 10); ++c) a.weights[(h * rows + r) * columns + c] = 0.1f;
      }
    }
    return a;
  }

  std::function<double(const std::vector<float>& samples, size_t row, size_t rows)> align_at;  // column
  int forks = 0, steps = 0, encoded = 0, aligned = 0;
  size_t most_pieces = 0, most_windows = 0, tokens = 0;

 private:
  struct Sequence {
    int window;
    std::vector<int32_t> tokens;
  };

  void answer(const Sequence& s, std::span<const int32_t> tokens) {
    size_t text = 0;  // the prompt ends with the last control token below the timestamps
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i] > v_.end && tokens[i] < v_.first_timestamp) text = i + 1;
    }
    const size_t at = logits_.size();
    logits_.resize(at + size_t(v_.size), -20.0f);
    script_({windows_.at(s.window), tokens.first(text), tokens.subspan(text), std::span(logits_).subspan(at)});
  }

  WhisperVocabulary v_;
  Script script_;
  int64_t window_, margin_;
  int last_ = 0;
  std::map<int, std::vector<float>> windows_;
  std::map<int, Sequence> sequences_;
  std::vector<float> logits_;
};

}  // namespace consonant
