// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace consonant {

// How a token is drawn from a row of logits. The stages run in this order: logit bias, penalties, first temperature,
// top-k, typical, top-p, min-p, temperature, draw; each sees the renormalised distribution that the one before left,
// and does nothing at its default. The first temperature divides the logits before anything is cut off, where a model's
// own settings mean that; a greedy choice doesn't feel it.
struct DrawOptions {
  float temperature = 0;  // 0: greedy
  int32_t top_k = 0;      // 0: off
  float top_p = 1;
  float min_p = 0;
  float typical = 1;
  float repeat_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  float first_temperature = 1;
};

// What changes a token's logit: how often it occurs where the penalties look, and its bias. A token has at most one.
struct Adjustment {
  int32_t token;
  int32_t count;
  float bias;
};

// The greatest logit; NaN if one is NaN or infinitely large, minus infinity if there is no other.
float greatest_logit(std::span<const float> logits);

// log(softmax(logits)[token]); `greatest` is the greatest of them.
float log_probability_of(std::span<const float> logits, float greatest, int32_t token);

// The stages of a draw over one row, on the processor. The order of calls is that of the functions.
class Stages {
 public:
  // Takes the logits with biases and penalties; returns the greatest, as greatest_logit does. Tokens lie in the row.
  float adjust(std::span<const float> logits, const DrawOptions& options, std::span<const Adjustment> adjustments);
  int32_t best() const;                               // the greedy choice
  void filter(const DrawOptions& options);            // top-k, typical, top-p, min-p
  uint64_t temper(float temperature);                 // the weights of what is left, and their sum
  int32_t draw(uint64_t sum, uint64_t number) const;  // a number from 0 to 2^53 - 1

  // What is left, in order of token id, and after `temper` its weights.
  std::span<const int32_t> tokens() const { return tokens_; }
  std::span<const float> weights() const { return weights_; }

 private:
  void collect_top_k(size_t k);
  void collect();
  void weigh();
  void keep_typical(float typical);
  void keep_top(float top_p);
  template <class Predicate>
  void keep_if(Predicate predicate);

  float top_ = 0;
  std::vector<float> logits_;  // of all tokens, adjusted by bias and penalties

  // The tokens that may still be drawn, in order of id.
  std::vector<int32_t> tokens_;
  std::vector<float> values_;  // their logits
  std::vector<float>
      weights_;  // exp(logit - greatest logit of all), in the end exp((logit - greatest left) / temperature)
  std::vector<float> keys_;       // their ranks in a stage, smaller is better
  std::vector<uint64_t> shares_;  // of their weights
};

}  // namespace consonant
