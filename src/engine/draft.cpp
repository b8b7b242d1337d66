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
  if (options.draft != Draft::own_head) options.override_kv.clear();  // they are the target's
  return options;
}

}  // namespace

Draft::Draft(const std::string& path, const EngineOptions& options, const ModelFile& target,
             const LanguageModel& target_model)
    : file_(open_for(options.draft == own_head ? path : options.draft, checked(options))) {
  weights_.emplace(file_);
  if (options.draft == own_head) {
    model_ = load_next_token_head(file_, *weights_);
  } else {
    model_ = load_language_model(file_, *weights_);
    warn_of_unused(file_, *weights_);
    check_same_tokens(file_, model_->vocabulary, target, target_model.vocabulary);
  }
  sources_ = sources_of(file_, *weights_);
}

// A text that has grown past the draft's own context is no longer guessed at.
RunnerOptions Draft::runner_options(const RunnerOptions& target) const {
  RunnerOptions options = target;
  options.context = std::min(target.context, model_->context);
  options.rows = 1;
  options.hidden = is_head();
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

int64_t HeadGuesser::next() const {
  return rows_.empty() ? (places_.empty() ? 0 : places_.back() + 1) : first_ + held();
}

void HeadGuesser::take(int64_t first, std::span<const float> rows) {
  const int64_t width = runner_.model().width, known = std::max<int64_t>(next() - first, 0);
  if (known * width >= std::ssize(rows)) return;  // read once more
  if (rows_.empty() || first > next()) rows_.clear(), first_ = first + known;
  rows = rows.subspan(static_cast<size_t>(known * width));
  rows_.insert(rows_.end(), rows.begin(), rows.end());
}

// A state that was read goes with the token after it.
void HeadGuesser::cut(int64_t length) {
  while (!places_.empty() && places_.back() + 1 >= length) places_.pop_back();
  runner_.truncate(sequence_, std::ssize(places_));
  const int64_t kept = std::clamp<int64_t>(length - first_, 0, held());
  rows_.resize(static_cast<size_t>(kept * runner_.model().width));
}

Drawn HeadGuesser::draw(std::span<const int32_t> tokens, std::span<const float> rows,
                        std::span<const int32_t> history) {
  const Piece piece{sequence_, tokens, false, 1, rows};
  const Draw how{&sampler_, history};
  return runner_.evaluate_and_draw({&piece, 1}, {&how, 1}).front();
}

std::vector<int32_t> HeadGuesser::guess(std::span<const int32_t> text, size_t most, const Sampler& sampler) {
  const int64_t size = std::ssize(text), width = runner_.model().width;
  const int64_t count = std::min(held(), size - 1 - first_);
  int64_t room = runner_.context() - std::ssize(places_) - count;
  const bool up_to_date = count > 0 && first_ + count == size - 1;
  if (count <= 0 || room < 0 || (most > 0 && !up_to_date)) return {};
  const std::vector<float> rows(rows_.begin(), rows_.begin() + count * width);
  rows_.erase(rows_.begin(), rows_.begin() + count * width);
  const auto tokens = text.subspan(static_cast<size_t>(first_) + 1, static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) places_.push_back(first_++);
  if (most == 0) {
    const Piece piece{sequence_, tokens, false, 1, rows};
    runner_.evaluate({&piece, 1});
    return {};
  }
  sampler_.draw_as(sampler);
  std::vector<int32_t> all(text.begin(), text.end());
  all.push_back(draw(tokens, rows, all).token);
  for (; all.size() < text.size() + most && room > 0; --room) {
    const std::span<const float> last = runner_.hidden().last(static_cast<size_t>(width));
    const std::vector<float> own(last.begin(), last.end());
    const int32_t token = all.back();
    all.push_back(draw({&token, 1}, own, all).token);
  }
  runner_.truncate(sequence_, std::ssize(places_));
  return {all.begin() + size, all.end()};
}

}  // namespace consonant
