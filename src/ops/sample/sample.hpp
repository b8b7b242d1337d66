// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "graph/node.hpp"

namespace consonant {

// The columns of sample's parameters.
struct SampleNumbers {
  enum : int {
    temperature,
    top_p,
    min_p,
    typical,
    repeat_penalty,
    frequency_penalty,
    presence_penalty,
    first_temperature,
    count
  };
};
struct SampleIntegers {
  enum : int { top_k, number_high, number_low, count };  // the draw's number, from 0 to 2^53 - 1, by its 32-bit halves
};
struct SampleAdjustment {
  enum : int { token, times, count };  // a negative token: none
};

// The widest vocabulary.
constexpr int64_t most_drawn_from = int64_t{1} << 20;

// What a row with no token to draw gives in its place, with NaN for the log-probability.
constexpr int32_t broken_logits = -1, all_excluded = -2;

// The next token of each row and the logarithm of its probability in softmax(logits): what decode/sampler.hpp picks
// with the same options, to the bit. The inputs that change from step to step are read on the device.
//
//   logits [row, n] float32, n at most 2^20; minus infinity excludes a token
//   numbers [row, 8] float32 and integers [row, 3] i32: the options, see above; temperature 0 is greedy
//   adjusted [row, slot, 2] i32 and bias [row, slot] float32: tokens whose logit changes, each at most once: how often
//   it
//     occurs where the penalties look, and what is added to its logit
//
// -> token [row] i32 and log-probability [row] float32. A NaN or infinite logit gives broken_logits.
std::pair<Tensor, Tensor> sample(Tensor logits, Tensor numbers, Tensor integers, Tensor adjusted, Tensor bias,
                                 Location at = Location::current());

}  // namespace consonant
