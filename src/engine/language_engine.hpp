// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "consonant/engine.hpp"
#include "engine/draft.hpp"
#include "engine/runner.hpp"
#include "formats/model_file.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// The engine of a language model. Behind the public Engine there is always one of these.
class LanguageEngine final : public Engine, public std::enable_shared_from_this<LanguageEngine> {
 public:
  // On an open device, whatever `options.device` says; `passed_over` as ModelInfo has it.
  LanguageEngine(const std::string& path, const EngineOptions& options, Target target,
                 std::vector<std::string> passed_over = {});

  const ModelInfo& info() const override { return info_; }
  double load_seconds() const override { return load_seconds_; }
  std::string sha256() const override;

  std::vector<int32_t> tokenize(std::string_view text, const TokenizeOptions& options) const override;
  std::string detokenize(std::span<const int32_t> tokens, bool special) const override;
  std::string render_chat(std::string_view variables, std::string_view source, std::string_view now) const override;
  std::unique_ptr<Session> session() override;

  Runner& runner() { return *runner_; }
  Draft* draft() { return draft_ ? &*draft_ : nullptr; }                              // null: there is none
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }  // null: the model has none
  const EngineOptions& options() const { return options_; }
  std::string fingerprint() const;  // see sequence_file.hpp
  const Target& target() const { return target_; }
  // A second runner over the same file, with another number of threads or sequences.
  std::unique_ptr<Runner> make_runner(int threads, int sequences = 1) const;

 private:
  RunnerOptions runner_options() const;

  EngineOptions options_;
  ModelFile file_;
  Target target_;
  std::optional<Tokenizer> tokenizer_;  // a model may come without one; then only token ids go in and out
  std::optional<Weights> weights_;
  std::unique_ptr<LanguageModel> model_;
  std::optional<Draft> draft_;
  std::unique_ptr<Runner> runner_;
  ModelInfo info_;
  double load_seconds_ = 0;
};

// What an engine runs a model with, which says nothing yet of its memory.
RunnerOptions runner_options_for(const EngineOptions& options, const Target& target, const LanguageModel& model,
                                 const std::vector<WeightSource>& sources, const Draft* draft = nullptr);
// The positions whose cache has to be there from the start.
int64_t counted_context(const EngineOptions& options, const LanguageModel& model, const RunnerOptions& runner);
// Exit::memory, before anything is loaded, for what an engine's runner couldn't hold.
void check_memory(const ModelFile& file, const EngineOptions& options, const LanguageModel& model,
                  const std::vector<WeightSource>& sources, const RunnerOptions& runner, const Draft* draft = nullptr);

// The engine behind the public interface; wrong usage if it is of another kind.
LanguageEngine& language_engine(Engine& engine);

}  // namespace consonant
