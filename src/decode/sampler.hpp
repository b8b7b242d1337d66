// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decode/random.hpp"

namespace consonant {

// How the next token is drawn; the public SamplingOptions, field by field. The stages run in this order: logit bias,
// repetition, frequency and presence penalties, top-k, typical, top-p, min-p, temperature, draw. Each stage sees the
// renormalised distribution that the one before left. A stage at its default does nothing.
struct Sampling {
  float temperature = 0;  // 0: greedy
  int top_k = 0;          // 0: off
  float top_p = 1;
  float min_p = 0;
  float typical = 1;
  float repeat_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  int penalty_window = 64;  // last tokens of the history that the penalties look at; -1: all
  std::vector<std::pair<int32_t, float>> logit_bias;
  uint64_t seed = 0;
};

// A token that may be drawn, and its probability.
struct Candidate {
  int32_t token;
  double probability;
};

// Picks tokens. Deterministic: the draw uses a generator of its own, exponentials and sums of one fixed order, so that
// the same logits, history and seed give the same tokens on every machine. Equal logits rank by token id, the lower one
// first.
class Sampler {
 public:
  explicit Sampler(Sampling sampling);  // wrong usage for values outside their range

  // The next token. `history` is the sequence so far, prompt included. One number is drawn a call unless greedy. NaN or
  // infinitely large logits are a failure of the model's run and are thrown as one.
  int32_t pick(std::span<const float> logits, std::span<const int32_t> history);

  // What pick would draw from, in order of token id; greedy: one candidate.
  std::vector<Candidate> distribution(std::span<const float> logits, std::span<const int32_t> history);

  bool greedy() const { return sampling_.temperature == 0; }

 private:
  float adjust(std::span<const float> logits, std::span<const int32_t> history);
  void penalise(std::span<const int32_t> history);
  int32_t best(float top) const;
  void filter(float top);
  void collect_top_k(size_t k);
  void collect();
  void weigh(float top);
  void keep_typical();
  template <class Predicate>
  void keep_if(Predicate predicate);
  double temper();

  Sampling sampling_;
  Random random_;
  std::vector<float> logits_;  // of all tokens, adjusted by bias and penalties

  // The tokens that may still be drawn, in order of id.
  std::vector<int32_t> tokens_;
  std::vector<float> values_;  // their logits
  std::vector<float>
      weights_;  // exp(logit - greatest logit of all), in the end exp((logit - greatest left) / temperature)
  std::vector<float> keys_;  // their ranks in a stage, smaller is better
};

// log(softmax(logits)[token]).
float log_probability(std::span<const float> logits, int32_t token);

}  // namespace consonant
