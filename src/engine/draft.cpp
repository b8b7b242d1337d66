// SPDX-License-Identifier: Apache-2.0
#include "engine/draft.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "engine/buckets.hpp"
#include "engine/model_setup.hpp"

namespace consonant {

namespace {

// A guess is a token id, so ids have to mean the same.
void check_same_tokens(const ModelFile& draft, int64_t size, const ModelFile& target, int64_t target_size) {
  const std::string& name = draft.meta->source;
  if (size != target_size)
    bad_input("{}: a draft with {} tokens in its vocabulary for a model with {}", name, size, target_size);
  constexpr const char* key = "tokenizer.ggml.tokens";
  if (!target.meta->has(key)) return;
  if (!draft.meta->has(key)) bad_input("{}: a draft without the tokens' names that the model has ({})", name, key);
  const auto &mine = draft.meta->strings(key), &theirs = target.meta->strings(key);
  if (mine.size() != theirs.size())
    bad_input("{}: a draft with {} named tokens for a model with {}", name, mine.size(), theirs.size());
  for (size_t i = 0; i < mine.size(); ++i)
    if (mine[i] != theirs[i])
      bad_input("{}: a draft whose token {} is '{}', but the model's is '{}'", name, i, mine[i], theirs[i]);
}

EngineOptions checked(EngineOptions options) {
  if (options.draft_tokens < 1 || options.draft_tokens > most_draft_tokens)
    bad_usage("{} draft tokens, but they go from 1 to {}", options.draft_tokens, most_draft_tokens);
  options.override_kv.clear();  // they are the target's
  return options;
}

}  // namespace

Draft::Draft(const EngineOptions& options, const ModelFile& target, const LanguageModel& target_model)
    : file_(open_for(options.draft, checked(options))) {
  weights_.emplace(file_);
  model_ = load_language_model(file_, *weights_);
  warn_of_unused(file_, *weights_);
  check_same_tokens(file_, model_->vocabulary, target, target_model.vocabulary);
  sources_ = sources_of(file_, *weights_);
}

// A text that has grown past the draft's own context is no longer guessed at.
RunnerOptions Draft::runner_options(const RunnerOptions& target) const {
  RunnerOptions options = target;
  options.context = std::min(target.context, model_->context);
  options.rows = 1;
  options.marks = HeldText::marks_for(*model_, 0, true);
  return options;
}

void Draft::load(const RunnerOptions& options) { runner_ = std::make_unique<Runner>(*model_, sources_, options); }

std::vector<int32_t> DraftGuesser::guess(std::span<const int32_t> text, size_t most, const Sampler& sampler) {
  const int64_t size = std::ssize(text), room = runner_.context() - size;
  if (room < 0) return {};
  most = std::min(most, static_cast<size_t>(room) + 1);  // the last guess isn't read
  held_.keep(text, most > 0 ? size - 1 : size);
  const int64_t left = size - held_.size();
  if (most == 0 || left > most_tokens) {  // much is read in parts
    if (left > 0)
      held_.step(text.subspan(static_cast<size_t>(held_.size()), static_cast<size_t>(std::min(left, most_tokens))));
    return {};
  }
  sampler_.draw_as(sampler);
  std::vector<int32_t> all(text.begin(), text.end());
  while (all.size() < text.size() + most) {
    all.push_back(held_.draw({&sampler_, all}).token);
    if (all.size() == text.size() + 1) held_.mark_guess();
  }
  return {all.begin() + size, all.end()};
}

}  // namespace consonant
