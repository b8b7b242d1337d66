// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.hpp"

namespace consonant {

// A row of K activations, K a multiple of 32, as the quantised products take it: in one part of 8 bits (DType::q8_x) or
// in two (DType::q16_x). Planar:
//   int8  q[K]           x is about scale[i / 32] * q[i], q in -127 ... 127
//   int8  rest[K]        of two parts: x is about scale[i / 32] * (q[i] + rest[i] / 256)
//   float scale[K / 32]  greatest magnitude of the block / 127
//   float sum[K / 16]    sum of 16 neighbours of these approximations: what a weight's constant part multiplies
struct ActivationRow {
  const int8_t* q;
  const int8_t* rest;  // null in q8_x
  const float* scale;
  const float* sum;

  static int64_t bytes(int64_t k, int parts) { return k / 32 * (32 * parts + 12); }
  static ActivationRow at(const std::byte* row, int64_t k, int parts) {
    const auto* q = reinterpret_cast<const int8_t*>(row);
    const auto* scale = reinterpret_cast<const float*>(row + parts * k);
    return {q, parts == 2 ? q + k : nullptr, scale, scale + k / 32};
  }
  float operator[](int64_t i) const {
    return scale[i / 32] * (static_cast<float>(q[i]) + (rest ? static_cast<float>(rest[i]) / 256 : 0.0f));
  }
};

// Parts of a type of activations.
constexpr int activation_parts(DType type) { return type == DType::q16_x ? 2 : 1; }

}  // namespace consonant
