// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace consonant {

// A row of K activations in 8 bits (DType::q8_x), K a multiple of 32, as the quantised products take it. Planar:
//   int8  q[K]          x is about scale[i / 32] * q[i], q in -127 ... 127
//   float scale[K / 32]  greatest magnitude of the block / 127
//   float sum[K / 16]    scale * (sum of 16 neighbouring q): what a weight's constant part multiplies
//
// A row of DType::q16_x is two such rows, one after the other: x is about the sum of both, the second of which is what
// the first leaves, in 8 bits again.
struct ActivationRow {
  const int8_t* q;
  const float* scale;
  const float* sum;

  static int64_t bytes(int64_t k) { return k / 32 * 44; }
  static ActivationRow at(const std::byte* row, int64_t k) {
    return {reinterpret_cast<const int8_t*>(row), reinterpret_cast<const float*>(row + k),
            reinterpret_cast<const float*>(row + k + k / 8)};
  }
};

}  // namespace consonant
