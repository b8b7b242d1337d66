// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "consonant/engine.hpp"
#include "decode/speculative.hpp"
#include "engine/held_text.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// What guesses for a model: a smaller one, or the head for further tokens in its own file ("mtp").
class Draft {
 public:
  static constexpr const char* own_head = "mtp";  // in the place of a path

  // Reads the file's description; its weights stay where they are. Bad input for a model whose tokens aren't
  // those of `target`, which is at `path`, with the first that differs, and for a file without a head.
  Draft(const std::string& path, const EngineOptions& options, const ModelFile& target,
        const LanguageModel& target_model);

  const LanguageModel& model() const { return *model_; }
  const std::vector<WeightSource>& sources() const { return sources_; }
  const ModelFile& file() const { return file_; }

  // How it is run beside a model that is run with `target`.
  RunnerOptions runner_options(const RunnerOptions& target) const;
  void load(const RunnerOptions& options);
  Runner& runner() { return *runner_; }
  bool is_head() const { return model_->reads_hidden; }

 private:
  ModelFile file_;
  std::optional<Weights> weights_;
  std::unique_ptr<LanguageModel> model_;
  std::vector<WeightSource> sources_;
  std::unique_ptr<Runner> runner_;
};

// Guesses by the draft's own draws.
class DraftGuesser final : public Guesser {
 public:
  explicit DraftGuesser(Draft& draft) : runner_(draft.runner()), held_(runner_, 0) {}

  std::vector<int32_t> guess(std::span<const int32_t> text, size_t most, const Sampler& sampler) override;

 private:
  Runner& runner_;
  HeldText held_;
  Sampler sampler_{Sampling{}};
};

// Guesses by a head for further tokens, from the hidden states that the model has read a text with: the token at i + 1
// and the state at i give the token at i + 2, and the head's own state what comes after. Its cache has the states that
// it was told of; others are passed over.
class HeadGuesser final : public Guesser {
 public:
  explicit HeadGuesser(Draft& draft) : runner_(draft.runner()), sequence_(runner_.open()) {}
  ~HeadGuesser() override { runner_.close(sequence_); }

  // The model has read the tokens from position `first` on, with these states [token, width].
  void take(int64_t first, std::span<const float> rows);
  // Of what it has read, the first `length` tokens are of the text.
  void cut(int64_t length);

  std::vector<int32_t> guess(std::span<const int32_t> text, size_t most, const Sampler& sampler) override;

 private:
  int64_t held() const { return std::ssize(rows_) / runner_.model().width; }
  int64_t next() const;
  Drawn draw(std::span<const int32_t> tokens, std::span<const float> rows, std::span<const int32_t> history);

  Runner& runner_;
  int sequence_;
  std::vector<int64_t> places_;  // positions of the states that its cache is made of
  int64_t first_ = 0;            // that of the first state in rows_
  std::vector<float> rows_;      // told, and not yet read
  Sampler sampler_{Sampling{}};
};

}  // namespace consonant
