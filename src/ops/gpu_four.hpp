// SPDX-License-Identifier: Apache-2.0
#pragma once

// Four neighbours of a row of float32.
#include "device/gpu.hpp"

namespace consonant::GPU_BUILD {

struct Four {
  float x[4];
};

GPU_FN Four four_of(const gpu::U4& bits) {
  return {{gpu::from_bits(bits.x), gpu::from_bits(bits.y), gpu::from_bits(bits.z), gpu::from_bits(bits.w)}};
}

// From `column` on, zeros from `cols` on; `aligned`: the row begins at a multiple of 16 bytes, as `column` does in it.
GPU_FN Four load_four(gpu::Ptr<const float> row, int column, int cols, bool aligned) {
  if (aligned && column + 4 <= cols) return four_of(gpu::load16(row + column));
  Four four = {{0, 0, 0, 0}};
  GPU_UNROLL
  for (int i = 0; i < 4; ++i)
    if (column + i < cols) four.x[i] = row[column + i];
  return four;
}

}  // namespace consonant::GPU_BUILD
