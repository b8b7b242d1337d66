// SPDX-License-Identifier: Apache-2.0
#pragma once

// The order of a row's sum of squares, for all kernels that normalise rows: it follows from the length alone. Up to
// short_norm columns, thread i of short_norm_threads has every so many-th square from i on, and the threads' sums are
// added up as gpu::block_sum does it. Longer rows are cut into units of 256 columns; a lane adds up the squares of its
// columns, gpu::warp_sum the lanes, and the units' sums are added up in their order.
#include "ops/gpu_four.hpp"

namespace consonant::GPU_BUILD {

constexpr int short_norm = 256, short_norm_threads = 64;
constexpr int norm_unit = 256;

constexpr int norm_fours = norm_unit / 4 / gpu::lane_width;  // of a lane
GPU_FN int norm_column(int unit, int four) {
  const int b = gpu::lane() / 4, t = gpu::lane() % 4;
  return unit * norm_unit + (norm_fours == 1 ? 4 * gpu::lane() : 32 * b + 4 * t + 16 * four);
}

// Of a unit, for every lane of a warp.
GPU_FN float unit_squares(const Four (&x)[norm_fours]) {
  float sum = 0;
  GPU_UNROLL
  for (int i = 0; i < norm_fours; ++i) GPU_UNROLL
  for (int j = 0; j < 4; ++j) sum = gpu::fma(x[i].x[j], x[i].x[j], sum);
  return gpu::warp_sum(sum);
}

GPU_FN float norm_scale(float squares, int64_t columns, float epsilon) {
  return 1 / gpu::sqrt(squares / static_cast<float>(columns) + epsilon);
}

}  // namespace consonant::GPU_BUILD
