// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace consonant {

inline constexpr int64_t most_tokens = 512;  // of a step

// Capacities that programs are built for: the smallest that holds a step is used.
inline int64_t bucket(int64_t n) {
  for (int64_t capacity : {int64_t{1}, int64_t{8}, int64_t{64}})
    if (n <= capacity) return capacity;
  return most_tokens;
}

}  // namespace consonant
