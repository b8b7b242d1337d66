// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/beam.hpp"
#include "models/whisper_vocabulary.hpp"

namespace consonant {

// What Whisper may write next (Radford et al. 2022, and its reference code):
// - never the suppressed tokens nor, apart from the end and timestamps, control tokens; not as the first token those
//   of `suppress_at_begin`;
// - without timestamps: none of them; with them: the first token is one, of 1.00 s at most; text and a timestamp are
//   followed by a timestamp or the end, two timestamps (and the first one) by text or the end; times never decrease,
//   and grow unless a segment opens where the last one closed;
// - only timestamps, if all of them together are likelier than the likeliest other token.
// Probabilities are those among what is allowed. Logits that are NaN or +infinity are a failure of the model's run.
class WhisperRules : public TokenRules {
 public:
  // `vocabulary` must outlive the rules.
  WhisperRules(const WhisperVocabulary& vocabulary, bool timestamps);

  void best(std::span<const float> logits, std::span<const int32_t> generated, int count,
            std::vector<NextToken>& to) override;
  void draw(std::span<const float> logits, std::span<const int32_t> generated, double temperature,
            std::span<Random> randoms, std::vector<NextToken>& to) override;

 private:
  // A run of allowed ids, short, so that its largest logit says whether to look closer.
  struct Block {
    int32_t begin, end;
    float top = 0;
    double mass = 0;
  };

  std::vector<Block> text_blocks(bool begin) const;
  void allow(std::span<const int32_t> generated);
  void weigh(std::span<const float> logits, std::span<const int32_t> generated);
  NextToken draw(std::span<const float> logits, float scale, double left) const;
  void add_stamps(int32_t from, int32_t to);

  const WhisperVocabulary& vocabulary_;
  bool timestamps_;
  std::vector<Block> text_, first_text_;  // and the end token: at any step but the first, at the first

  // Of the step at hand.
  std::vector<Block> allowed_;
  size_t text_blocks_ = 0;  // of `allowed_`; timestamps follow
  float top_ = 0;           // the largest allowed logit
  double log_sum_ = 0;      // log of the sum of exp(logit - top) over the allowed
};

}  // namespace consonant
