// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

namespace consonant::encoding {

// Nearest whole number, ties to even, held to [low, high]: out of range values of any size are welcome, NaN is not.
inline float round_level(float x, float low, float high) {
  const float held = std::min(std::max(x, low), high);
  constexpr float shift = 0x1.8p23f;  // has a unit of one in its last place
  return (held + shift) - shift;
}

inline int round_between(float x, int low, int high) {
  return static_cast<int>(round_level(x, static_cast<float>(low), static_cast<float>(high)));
}

// 1 / d, and 0 where that isn't a finite number: such a scale can tell no levels apart.
inline float inverse(float d) {
  const float inverse = d != 0.f ? 1.f / d : 0.f;
  return inverse - inverse == 0.f ? inverse : 0.f;
}

// The element of largest magnitude, with its sign; the first of equals. 0 for nothing.
float extreme(std::span<const float> x);

// The fits below look for the scale of a sub-block among those near the one that makes its range end at the outermost
// level. For each candidate the elements are rounded to levels; those levels then have a best scale in closed form
// (weighted least squares), and the candidate with the least remaining error wins. Counts are multiples of `lanes`,
// magnitudes at most 1 so that sums of fourth powers stay in range.

inline constexpr size_t lanes = 8;  // partial sums that the compiler may keep in vectors

// What an error costs: large elements matter most, small ones in proportion to the size of their sub-block.
using Weights = std::array<float, 32>;

struct Affine {  // x ~ scale * q - min, q in [0, levels], min >= 0
  float scale = 0, min = 0;
};
Affine fit_affine(std::span<const float> x, const Weights& weights, int levels);

// x ~ scale * q, q in [-n, n - 1].
float fit_symmetric(std::span<const float> x, const Weights& weights, int n);

// x ~ scale * value, value one of the 16 of IQ4.
float fit_iq4(std::span<const float> x, const Weights& weights);

// The sum of weights[i] (restored(x[i]) - x[i])^2.
template <class Restored>
float weighted_error(std::span<const float> x, const Weights& weights, Restored restored) {
  float partial[lanes] = {};
  for (size_t i = 0; i < x.size(); i += lanes)
    for (size_t l = 0; l < lanes; ++l) {
      const float difference = restored(x[i + l]) - x[i + l];
      partial[l] += weights[i + l] * difference * difference;
    }
  float sum = 0;
  for (float p : partial) sum += p;
  return sum;
}

// The closest of the values of IQ4: its index, and itself.
int nearest_iq4(float x);
float level_iq4(float x);

}  // namespace consonant::encoding
