// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "base/rounding.hpp"

namespace consonant {

// Exponential and logarithm made of additions, multiplications and divisions alone, so that they have the same bits on
// every machine and in kernels, which no C library promises, and so that a loop over them vectorises.

// e^x for x <= 0, within 2e-7 of it, 0 below -87.
// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r is its Taylor polynomial of degree 7.
constexpr float exp_of_negative(float x) {
  constexpr float round = 0x1.8p23f;  // adding it leaves no bits for a fraction
  // What is below is masked out rather than branched on: compilers make vectors of a loop over it only so.
  constexpr int32_t limit = std::bit_cast<int32_t>(87.0f);
  const auto bits = std::bit_cast<int32_t>(x);
  const int32_t keep = (bits & 0x7FFFFFFF) > limit ? 0 : -1;
  const auto y = std::bit_cast<float>(bits & keep);
  const float n = rounded_add(rounded_add(rounded_mul(y, 1.44269504f), round), -round);
  // ln 2 in two parts: the first is exact times n
  const float r = rounded_add(rounded_add(y, -rounded_mul(n, 0.693359375f)), rounded_mul(n, 2.12194440e-4f));
  float p = 1.0f / 5040;
  p = rounded_add(rounded_mul(p, r), 1.0f / 720);
  p = rounded_add(rounded_mul(p, r), 1.0f / 120);
  p = rounded_add(rounded_mul(p, r), 1.0f / 24);
  p = rounded_add(rounded_mul(p, r), 1.0f / 6);
  p = rounded_add(rounded_mul(p, r), 0.5f);
  p = rounded_add(rounded_mul(p, r), 1.0f);
  p = rounded_add(rounded_mul(p, r), 1.0f);
  const auto power = std::bit_cast<float>((int32_t(n) + 127) << 23);
  return std::bit_cast<float>(std::bit_cast<int32_t>(rounded_mul(p, power)) & keep);
}

// ln x for finite x >= 1, within 1e-15 or a part in 1e15 of it.
// x = m 2^e with m in [sqrt(1/2), sqrt(2)), and ln m = 2 artanh(s) with s = (m - 1) / (m + 1), by its Taylor polynomial
// of degree 21: |s| is below 0.172.
constexpr double log_of_large(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int32_t e = int32_t(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > 1.4142135623730951) m *= 0.5, ++e;
  const double s = rounded_add(m, -1.0) / rounded_add(m, 1.0), square = rounded_mul(s, s);
  double p = 0;
  for (int degree = 21; degree > 0; degree -= 2) p = rounded_add(rounded_mul(p, square), 1.0 / degree);
  return rounded_add(rounded_mul(double(e), 0.6931471805599453), rounded_mul(rounded_mul(2.0, s), p));
}

}  // namespace consonant
