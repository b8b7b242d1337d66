// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace consonant {

// e^x for x <= 0, within 2e-7 of it, 0 below -87. Made of additions and multiplications alone, so that it has the same
// bits on every machine, which the C library's doesn't promise. What is below is masked out rather than branched on:
// compilers make vectors of a loop over it only so.
// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r is its Taylor polynomial of degree 7.
inline float exp_of_negative(float x) {
  constexpr float round = 0x1.8p23f;  // adding it leaves no bits for a fraction
  constexpr int32_t limit = std::bit_cast<int32_t>(87.0f);
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t keep = (bits & 0x7fffffff) > limit ? 0 : -1;
  const auto y = std::bit_cast<float>(bits & keep);
  const float n = (y * 1.44269504f + round) - round;
  const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;  // ln 2 in two parts: the first is exact times n
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto power = std::bit_cast<float>((int32_t(n) + 127) << 23);
  return std::bit_cast<float>(std::bit_cast<int32_t>(p * power) & keep);
}

}  // namespace consonant
