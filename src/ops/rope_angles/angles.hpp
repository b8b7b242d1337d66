// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "ops/rope_angles/rope_angles.hpp"
#include "ops/work.hpp"

namespace consonant {

// The share of frequency i that YaRN leaves as it is. The blend runs from pair `low` to pair `high`, the ones that turn
// `fast` and `slow` times over the context.
inline float yarn_kept(const Rotary& r, int64_t i) {
  const auto dims = static_cast<double>(r.dims);
  const auto pair_of = [&](double turns) {
    return dims * std::log(r.yarn.context / (turns * 2 * 3.14159265358979323846)) / (2 * std::log(r.base));
  };
  const double low = std::max(std::floor(pair_of(r.yarn.fast)), 0.0);
  double high = std::min(std::ceil(pair_of(r.yarn.slow)), dims - 1);
  if (low == high) high += 0.001;
  return 1 - static_cast<float>(std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0));
}

// The frequencies, rounded to float32 where the reference implementations round them: angles at large positions depend
// on it.
inline float rope_frequency(const Rotary& r, const float* divisors, int64_t i) {
  const auto frequency =
      static_cast<float>(1 / std::pow(r.base, 2 * static_cast<double>(i) / static_cast<double>(r.dims)));
  if (r.yarn.factor != 1) {
    const float kept = yarn_kept(r, i), stretched = frequency / static_cast<float>(r.yarn.factor);
    return (stretched * (1 - kept) + frequency * kept) * static_cast<float>(r.scale);
  }
  return (divisors ? frequency / divisors[i] : frequency) * static_cast<float>(r.scale);
}

}  // namespace consonant
