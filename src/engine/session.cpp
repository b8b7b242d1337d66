// SPDX-License-Identifier: Apache-2.0
#include "engine/session.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "engine/model_setup.hpp"
#include "engine/sequence_file.hpp"
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
  if (!(options.deadline >= 0))
    bad_usage("a deadline of {} seconds, but it has to be 0 (none) or greater", options.deadline);
  for (const auto& bias : options.sampling.logit_bias)
    if (bias.first < 0 || bias.first >= vocabulary)
      bad_usage("logit bias for token {}, but the model's tokens go from 0 to {}", bias.first, vocabulary - 1);
}

}  // namespace

LanguageSession::LanguageSession(std::shared_ptr<LanguageEngine> engine)
    : engine_(std::move(engine)), sequence_(engine_->runner().open()) {}
LanguageSession::~LanguageSession() { engine_->runner().close(sequence_); }

int64_t LanguageSession::length() const { return engine_->runner().length(sequence_); }

void LanguageSession::reset() {
  engine_->runner().truncate(sequence_, 0);
  cached_.clear();
}

void LanguageSession::save(const std::string& path) {
  // A step that failed leaves positions that no token is known of.
  if (length() != static_cast<int64_t>(cached_.size()))
    throw_error(Exit::failed, "the sequence's last step failed, so it can't be saved");
  save_sequence(path, engine_->runner(), sequence_, cached_, engine_->fingerprint());
}

void LanguageSession::restore(const std::string& path) {
  cached_ = restore_sequence(path, engine_->runner(), sequence_, engine_->fingerprint());
}

std::span<const float> LanguageSession::step(std::span<const int32_t> tokens) {
  const Piece piece{sequence_, tokens, false};
  const auto logits = engine_->runner().evaluate({&piece, 1});
  cached_.insert(cached_.end(), tokens.begin(), tokens.end());
  return logits;
}

Drawn LanguageSession::draw(std::span<const int32_t> tokens, const Draw& how) {
  const Piece piece{sequence_, tokens, false};
  const Drawn drawn = engine_->runner().evaluate_and_draw({&piece, 1}, {&how, 1}).front();
  cached_.insert(cached_.end(), tokens.begin(), tokens.end());
  return drawn;
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
  const auto differ = std::mismatch(cached_.begin(), cached_.end(), prompt.begin(), prompt.end());
  const int64_t same = std::min<int64_t>(differ.first - cached_.begin(), size - 1);
  const int64_t shared = engine_->runner().keepable(sequence_, same);
  engine_->runner().truncate(sequence_, shared);
  cached_.resize(static_cast<size_t>(shared));

  Autoregression loop;
  loop.sampling = to_sampling(options.sampling);
  loop.limits.cancelled = &cancelled_;
  if (options.deadline > 0) loop.limits.deadline = Deadline::after(options.deadline);
  if (!options.ignore_eos) loop.limits.end_tokens = engine_->tokenizer().end_ids();
  loop.limits.max_tokens = options.max_tokens;
  loop.limits.context = context;
  loop.stop = options.stop;
  loop.logprobs = options.logprobs;
  Continuation made = consonant::generate(*this, engine_->tokenizer(), prompt, shared, loop, on_text);

  Generation result;
  result.text = std::move(made.text);
  result.tokens = std::move(made.tokens);
  result.logprobs = std::move(made.logprobs);
  result.stop_reason = to_reason(made.stop);
  result.timings = {engine_->load_seconds(), made.prompt_s, made.generate_s,
                    made.first_token_s,      size,          static_cast<int64_t>(result.tokens.size())};
  return result;
}

}  // namespace consonant
