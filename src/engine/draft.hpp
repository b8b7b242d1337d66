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

// The small model whose guesses a large one checks.
class Draft {
 public:
  // Reads the file's description; its weights stay where they are. Bad input for a model whose tokens aren't those of
  // `target`, with the first that differs.
  Draft(const EngineOptions& options, const ModelFile& target, const LanguageModel& target_model);

  const LanguageModel& model() const { return *model_; }
  const std::vector<WeightSource>& sources() const { return sources_; }
  const ModelFile& file() const { return file_; }

  // How it is run beside a model that is run with `target`.
  RunnerOptions runner_options(const RunnerOptions& target) const;
  void load(const RunnerOptions& options);
  Runner& runner() { return *runner_; }

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

}  // namespace consonant
