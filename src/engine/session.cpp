// SPDX-License-Identifier: Apache-2.0
#include "engine/session.hpp"

#include <optional>
#include <utility>

#include "base/error.hpp"
#include "engine/model_setup.hpp"
#include "engine/stop_reason.hpp"

namespace consonant {

namespace {

Sampling to_sampling(const SamplingOptions& o) {
  return {.temperature = o.temperature,
          .top_k = o.top_k,
          .top_p = o.top_p,
          .min_p = o.min_p,
          .typical = o.typical,
          .repeat_penalty = o.repeat_penalty,
          .frequency_penalty = o.frequency_penalty,
          .presence_penalty = o.presence_penalty,
          .penalty_window = o.penalty_window,
          .logit_bias = o.logit_bias,
          .seed = o.seed};
}

// What would otherwise show after the prompt has been read, or not at all: a bound that doesn't bound.
void check(const GenerateOptions& options, int64_t vocabulary) {
  if (options.max_tokens < -1)
    bad_usage("max_tokens is {}, but has to be 0 or greater, or -1 (what the context leaves)", options.max_tokens);
  if (options.stable < 0) bad_usage("{} stable tokens, but it has to be 0 (none) or greater", options.stable);
  if (!(options.deadline >= 0))
    bad_usage("a deadline of {} seconds, but it has to be 0 (none) or greater", options.deadline);
  for (const auto& bias : options.sampling.logit_bias)
    if (bias.first < 0 || bias.first >= vocabulary)
      bad_usage("logit bias for token {}, but the model's tokens go from 0 to {}", bias.first, vocabulary - 1);
}

}  // namespace

LanguageSession::LanguageSession(std::shared_ptr<LanguageEngine> engine)
    : engine_(std::move(engine)), held_(engine_->runner(), places) {
  Draft* const draft = engine_->draft();
  if (!draft) return;
  if (!draft->is_head()) {
    guesser_ = std::make_unique<DraftGuesser>(*draft);
    return;
  }
  auto head = std::make_unique<HeadGuesser>(*draft);
  head_ = head.get();
  guesser_ = std::move(head);
  held_.on_hidden([this](int64_t first, std::span<const float> rows) { head_->take(first, rows); });
}

int64_t LanguageSession::length() const { return engine_->runner().length(held_.sequence()); }

void LanguageSession::reset() {
  held_.keep({}, 0);
  if (head_) head_->cut(0);
}

void LanguageSession::save(const std::string& path) { held_.save(path, engine_->fingerprint()); }

void LanguageSession::restore(const std::string& path) {
  held_.restore(path, engine_->fingerprint());
  if (head_) head_->cut(0);
}

std::span<const float> LanguageSession::step(std::span<const int32_t> tokens) { return held_.step(tokens); }

// A part of the prompt, in two where it goes past the place that is to be remembered.
void LanguageSession::read(std::span<const int32_t> tokens) {
  const int64_t before = stable_ - held_.size();
  if (before > 0 && before <= std::ssize(tokens)) {
    held_.step(tokens.first(static_cast<size_t>(before)));
    held_.remember();
    tokens = tokens.subspan(static_cast<size_t>(before));
  }
  if (!tokens.empty()) held_.step(tokens);
}

Drawn LanguageSession::draw(std::span<const int32_t> tokens, const Draw& how) {
  // Of the prompt's last part, what comes before that place.
  const int64_t before = stable_ - held_.size();
  if (before > 0 && before < std::ssize(tokens)) read(tokens.first(static_cast<size_t>(before)));
  return held_.draw(how);
}

std::vector<Drawn> LanguageSession::draw_along(const Draw& how, size_t guessed) {
  const std::vector<Drawn> drawn = held_.draw_along(how, guessed);
  if (head_) head_->cut(std::ssize(how.history) - static_cast<int64_t>(guessed) + std::ssize(drawn) - 1);
  return drawn;
}

// The sequence ends before the last drawn token, whatever was guessed.
void LanguageSession::end_at(std::span<const int32_t> prompt, std::span<const int32_t> drawn) {
  if (drawn.empty()) return;
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  text.insert(text.end(), drawn.begin(), drawn.end() - 1);
  const auto kept = static_cast<size_t>(held_.keep(text, std::ssize(text)));
  if (head_) head_->cut(std::ssize(text));
  if (kept < text.size()) held_.step(std::span<const int32_t>(text).subspan(kept));
}

Generation LanguageSession::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                     const OnText& on_text) {
  const int64_t context = engine_->runner().context(), size = static_cast<int64_t>(prompt.size());
  check(options, engine_->info().vocabulary);
  if (prompt.empty()) bad_input("the prompt is empty");
  if (size > context) bad_input("a prompt of {} tokens doesn't fit the context of {}", size, context);
  cancelled_ = false;
  bound_waits(engine_->target(), options.deadline);

  // What the cache shares with the prompt is kept, except for the last token: its logits are needed.
  const int64_t shared = held_.keep(prompt, size - 1);
  if (head_) head_->cut(shared);
  stable_ = options.stable;
  if (stable_ == shared) held_.remember();
  Autoregression loop;
  loop.sampling = to_sampling(options.sampling);
  loop.limits.cancelled = &cancelled_;
  if (options.deadline > 0) loop.limits.deadline = Deadline::after(options.deadline);
  const Tokenizer* const tokenizer = engine_->tokenizer();
  if (!tokenizer && (!options.ignore_eos || !options.stop.empty()))
    bad_input("{}: the model has no tokenizer, so nothing says which tokens or strings end a text: ignore them",
              engine_->info().path);
  if (!options.ignore_eos) loop.limits.end_tokens = tokenizer->end_ids();
  loop.limits.max_tokens = options.max_tokens;
  loop.limits.context = context;
  loop.stop = options.stop;
  loop.logprobs = options.logprobs;
  GuessedLogits& checker = *this;
  std::optional<Speculative> speculative;
  if (guesser_) {
    int64_t longest = context;
    if (options.max_tokens >= 0 && options.max_tokens < context - size) longest = size + options.max_tokens;
    speculative.emplace(checker, *guesser_, prompt, shared, static_cast<size_t>(engine_->options().draft_tokens),
                        longest);
  }
  NextLogits& model = speculative ? static_cast<NextLogits&>(*speculative) : checker;
  Continuation made = consonant::generate(model, tokenizer, prompt, shared, loop, on_text);
  if (speculative) end_at(prompt, made.tokens);

  Generation result;
  result.text = std::move(made.text);
  result.tokens = std::move(made.tokens);
  result.logprobs = std::move(made.logprobs);
  result.stop_reason = to_reason(made.stop);
  result.timings = {engine_->load_seconds(),
                    made.prompt_s,
                    made.generate_s,
                    made.first_token_s,
                    size,
                    static_cast<int64_t>(result.tokens.size()),
                    shared};
  if (speculative) result.drafted = speculative->guessed(), result.accepted = speculative->right();
  return result;
}

}  // namespace consonant
