// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decode/sampler.hpp"
#include "decode/stop.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// The model as the loop sees it: one sequence with its cache.
struct NextLogits {
  virtual ~NextLogits() = default;

  // Evaluates `tokens` (at least one) after what the cache holds, and returns the logits that follow the last of them,
  // one a token of the vocabulary, valid until the next call.
  virtual std::span<const float> step(std::span<const int32_t> tokens) = 0;

  // The same, and the token that is drawn from them. A model that draws where its logits are needn't bring them here.
  virtual Drawn draw(std::span<const int32_t> tokens, const Draw& how) { return draw_from(step(tokens), how); }

  // The same where the logits are of no use: all of a long prompt but its last part.
  virtual void read(std::span<const int32_t> tokens) { step(tokens); }
};

// Called with each piece of text, whole characters that no stop string can touch any more, and the ids that came since
// the last call; returning false cancels.
using OnPiece = std::function<bool(std::string_view text, std::span<const int32_t> tokens)>;

struct Autoregression {
  Sampling sampling;
  StopLimits limits;  // end_tokens as they count: none to ignore them
  std::vector<std::string> stop;
  bool logprobs = false;
  int64_t prompt_chunk =
      512;  // tokens of the prompt a step: between two of them, cancelling and deadline are looked at
};

struct Continuation {
  std::string text;             // without the stop string and the end token
  std::vector<int32_t> tokens;  // generated ones, the end token included
  std::vector<float> logprobs;  // of each, of the raw logits' softmax; if asked for
  Stop stop = Stop::end_token;
  double prompt_s = 0, generate_s = 0;  // reading the prompt; the steps after it
  double first_token_s = 0;             // from the call to the first token; 0 if there is none
};

// Continues `prompt`, whose first `cached` tokens the cache of `model` holds already (fewer than there are: the last
// one is evaluated for its logits). The last generated token is not evaluated: the cache ends before it. Without a
// tokenizer there is no text, and no stop string: each token comes with an empty piece.
Continuation generate(NextLogits& model, const Tokenizer* tokenizer, std::span<const int32_t> prompt, int64_t cached,
                      const Autoregression& options, const OnPiece& on_piece);

}  // namespace consonant
