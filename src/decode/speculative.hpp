// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "decode/autoregressive.hpp"

namespace consonant {

// A model that checks in one step what others guess.
struct GuessedLogits : NextLogits {
  // Draws the token that follows the text and, as long as what was drawn is the guess, the one after it: one at least,
  // and one more than the guess has at most. `how.history` is the text with the last `guessed` tokens being a guess;
  // the cache holds a part of the text and reads the rest. Afterwards it holds at most the text and what was guessed
  // right. Tokens, errors and the sampler's numbers are those of one `draw` after the other.
  virtual std::vector<Drawn> draw_along(const Draw& how, size_t guessed) = 0;
};

// Guesses how a text goes on.
struct Guesser {
  virtual ~Guesser() = default;

  // At most `most` tokens, or none, for what `sampler` would draw after `text`; it is not changed. A guesser that has
  // much to catch up with may do a part of it and guess nothing. `most` may be 0: it catches up.
  virtual std::vector<int32_t> guess(std::span<const int32_t> text, size_t most, const Sampler& sampler) = 0;
};

// Speculative decoding (Leviathan, Kalman and Matias 2023). A token is a function of the logits and of the sampler's
// next number, so a guess is right or not: what is drawn is what `target` alone would draw, token for token.
class Speculative final : public NextLogits {
 public:
  // `prompt`, of which the target's cache holds `cached` tokens, and the text after it have at most `longest` tokens.
  Speculative(GuessedLogits& target, Guesser& guesser, std::span<const int32_t> prompt, int64_t cached, size_t most,
              int64_t longest);

  std::span<const float> step(std::span<const int32_t> tokens) override { return target_.step(tokens); }
  Drawn draw(std::span<const int32_t> tokens, const Draw& how) override;
  void read(std::span<const int32_t> tokens) override;

  int64_t guessed() const { return guessed_; }
  int64_t right() const { return right_; }  // of the guessed tokens, those that were given out as drawn

 private:
  GuessedLogits& target_;
  Guesser& guesser_;
  std::span<const int32_t> prompt_;
  size_t read_;  // tokens of the prompt that the target has read
  size_t most_;
  int64_t longest_;
  std::deque<Drawn> ahead_;  // drawn already, those after the first being guesses that were right
  int64_t guessed_ = 0, right_ = 0;
  Sampler nothing_{Sampling{}};  // of guesses that aren't made
};

}  // namespace consonant
