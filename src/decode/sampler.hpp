// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decode/random.hpp"
#include "ops/sample/stages.hpp"

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
  bool temper_first = false;  // the temperature comes before top-k and all cuts, as in transformers' chain
};

// A token that may be drawn, and its probability.
struct Candidate {
  int32_t token;
  double probability;
};

// Picks tokens. Deterministic: the draw uses a generator of its own, exponentials of one definition and sums that are
// exact, so that the same logits, history and seed give the same tokens on every machine and on every device. Equal
// logits rank by token id, the lower one first.
class Sampler {
 public:
  explicit Sampler(Sampling sampling);  // wrong usage for values outside their range

  // The next token. `history` is the sequence so far, prompt included. One number is drawn a call unless greedy. NaN or
  // infinitely large logits are a failure of the model's run and are thrown as one.
  int32_t pick(std::span<const float> logits, std::span<const int32_t> history);

  // What pick would draw from, in order of token id; greedy: one candidate.
  std::vector<Candidate> distribution(std::span<const float> logits, std::span<const int32_t> history);

  bool greedy() const { return options_.temperature == 0; }

  // What the op `sample` (ops/sample) takes to pick the same token on a device: the options, the tokens whose logits
  // change, and the number of the draw, which is the generator's next unless greedy.
  const DrawOptions& options() const { return options_; }
  std::vector<Adjustment> adjustments(std::span<const int32_t> history, size_t vocabulary) const;
  uint64_t next_number() { return greedy() ? 0 : random_.number(); }

  // From now on it draws what `other` would draw, which isn't changed.
  void draw_as(const Sampler& other);
  // Where the generator stands, and back to there after numbers that turned out not to be needed.
  const Random& random() const { return random_; }
  void restart(const Random& at) { random_ = at; }

 private:
  void adjust(std::span<const float> logits, std::span<const int32_t> history);

  Sampling sampling_;
  DrawOptions options_;
  std::vector<Adjustment> biases_;  // in order of token id
  Random random_;
  Stages stages_;
};

// What is asked of whoever draws a token, and what it gives.
struct Draw {
  Sampler* sampler;                  // takes its next number
  std::span<const int32_t> history;  // as Sampler::pick takes it
  bool log_probability = false;      // of softmax(logits), besides the token
  bool on_condition = false;         // that earlier draws of the step go as guessed: an error in it isn't one yet
};
struct Drawn {
  int32_t token;
  float log_probability;  // NaN unless asked for
};
Drawn draw_from(std::span<const float> logits, const Draw& draw);

// log(softmax(logits)[token]).
float log_probability(std::span<const float> logits, int32_t token);

}  // namespace consonant
