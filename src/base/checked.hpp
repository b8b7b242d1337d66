// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/error.hpp"

namespace consonant {

// Arithmetic on numbers that a file or a caller supplied: overflow is bad input, never a wrapped value.
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) bad_input("size overflow: {} x {}", a, b);
  return r;
}

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) bad_input("size overflow: {} + {}", a, b);
  return r;
}

inline constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

}  // namespace consonant
