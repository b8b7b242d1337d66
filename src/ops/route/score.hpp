// SPDX-License-Identifier: Apache-2.0
#pragma once

// What decides between experts, with the same bits on every device: made of additions, multiplications and divisions
// that are rounded each, and summed in the order of the experts.
#include <bit>
#include <cstdint>

#include "base/exponential.hpp"
#include "base/rounding.hpp"
#include "ops/order.hpp"

namespace consonant {

// e^(x - top), the numerator of a softmax; NaN where x or top is no number.
constexpr float softmax_part(float x, float top) {
  const float below = x - top;
  return below <= 0 ? exp_of_negative(below) : below - below;
}

constexpr float sigmoid_score(float x) {
  if (x != x) return x;
  const float e = exp_of_negative(x < 0 ? x : -x);  // of the side where it can't overflow
  return x < 0 ? e / rounded_add(1.0f, e) : 1.0f / rounded_add(1.0f, e);
}

// An expert's place in the order of choice as one integer, the smaller one first; see ops/order.hpp.
constexpr uint64_t choice_key(float choice, int64_t expert) {
  return sort_key(std::bit_cast<uint32_t>(choice), expert, true);
}
// That of an expert whose group isn't used: behind all others.
constexpr uint64_t excluded_key(int64_t expert) { return uint64_t{0xFFFFFFFF} << 32 | static_cast<uint32_t>(expert); }

// The two greatest of a group's choices, taken one at a time; what is no number isn't seen.
struct TwoBest {
  float best = -__builtin_inff(), second = -__builtin_inff();

  constexpr void add(float x) {
    if (x > best) {
      second = best;
      best = x;
    } else if (x > second) {
      second = x;
    }
  }
};

}  // namespace consonant
