// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "ops/rope_angles/rope_angles.hpp"
#include "ops/work.hpp"

namespace consonant {

// The frequencies, rounded to float32 where the reference implementations round them: angles at large positions depend
// on it.
inline float rope_frequency(const Rotary& r, const float* divisors, int64_t i) {
  const auto frequency =
      static_cast<float>(1 / std::pow(r.base, 2 * static_cast<double>(i) / static_cast<double>(r.dims)));
  return (divisors ? frequency / divisors[i] : frequency) * static_cast<float>(r.scale);
}

}  // namespace consonant
