// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products with few rows of float32 weights, as those that route tokens to experts: on no tensor core, but launched as
// what surrounds them is. A block has four rows; its warps have every eighth unit of 256 columns, and their sums are
// added up in their order. With few tokens that is bound by latency, so the first weights are asked for before the
// inputs; with many by reading x and the weights from the second cache, for up to 8 tokens at a time. A token's result
// has the same bits however many there are.
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

constexpr int float_warps = 8, float_rows = 4;  // of a block

struct FloatProduct {
  Lines<const float> w, x, residual;  // residual: data null for none
  Lines<float> y;
  gpu::Ptr<const float> norm, bias;  // or null
  float epsilon;
  int rows, columns, tokens;
  bool aligned;  // rows of x, and norm, to 16 bytes

  GPU_FN int units() const { return (columns + unit_columns - 1) / unit_columns; }
};

// The scale that normalises each of a block's tokens.
template <int Tokens>
GPU_FN void float_scales(const FloatProduct& p, int first, gpu::Shared<float> squares, float (&scales)[Tokens]) {
  const int units = p.units();
  for (int i = gpu::warp(); i < units * Tokens; i += float_warps) {
    const int unit = i / Tokens, token = first + i % Tokens;
    if (token >= p.tokens) continue;
    Four x[2];
    GPU_UNROLL
    for (int k = 0; k < 2; ++k) x[k] = load_four(p.x.row(token), norm_column(unit, k), p.columns, p.aligned);
    const float sum = unit_squares(x);
    if (gpu::lane() == 0) squares[i] = sum;
  }
  gpu::sync();
  GPU_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    float sum = 0;
    for (int unit = 0; unit < units && first + t < p.tokens; ++unit) sum += squares[unit * Tokens + t];
    scales[t] = norm_scale(sum, p.columns, p.epsilon);
  }
}

template <int Tokens>
GPU_KERNEL void float_products(FloatProduct p) {
  GPU_DYNAMIC_SHARED(float, shared);
  const int first_row = static_cast<int>(gpu::block()) * float_rows, first = static_cast<int>(gpu::block_y()) * Tokens;
  const int units = p.units();
  Four w[float_rows][2];
  const auto load_weights = [&](int unit) {
    GPU_UNROLL
    for (int r = 0; r < float_rows; ++r) {
      const int row = first_row + r < p.rows ? first_row + r : p.rows - 1;
      GPU_UNROLL
      for (int k = 0; k < 2; ++k) w[r][k] = load_four(p.w.row(row), norm_column(unit, k), p.columns, true);
    }
  };
  load_weights(gpu::warp() < units ? gpu::warp() : 0);
  gpu::wait_for_inputs();
  float scales[Tokens];
  if (p.norm) float_scales<Tokens>(p, first, shared, scales);
  float sums[float_rows][Tokens] = {};
  for (int unit = gpu::warp(); unit < units; unit += float_warps) {
    if (unit >= float_warps) load_weights(unit);
    GPU_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      const int token = first + t < p.tokens ? first + t : p.tokens - 1;
      GPU_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int column = norm_column(unit, k);
        Four x = load_four(p.x.row(token), column, p.columns, p.aligned);
        if (p.norm) {
          const Four by = load_four(p.norm, column, p.columns, p.aligned);
          GPU_UNROLL
          for (int j = 0; j < 4; ++j) x.x[j] = x.x[j] * scales[t] * by.x[j];
        }
        GPU_UNROLL
        for (int r = 0; r < float_rows; ++r) GPU_UNROLL
        for (int j = 0; j < 4; ++j) sums[r][t] = gpu::fma(w[r][k].x[j], x.x[j], sums[r][t]);
      }
    }
  }
  if (p.norm) gpu::sync();  // the squares have been read
  GPU_UNROLL
  for (int r = 0; r < float_rows; ++r) GPU_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    const float sum = gpu::warp_sum(sums[r][t]);
    if (gpu::lane() == 0) shared[(gpu::warp() * Tokens + t) * float_rows + r] = sum;
  }
  gpu::sync();
  const int i = gpu::thread(), row = first_row + i % float_rows, token = first + i / float_rows;
  if (i >= float_rows * Tokens || row >= p.rows || token >= p.tokens) return;
  float total = 0;
  GPU_UNROLL
  for (int k = 0; k < float_warps; ++k) total = gpu::add(total, shared[k * float_rows * Tokens + i]);
  if (p.bias) total = gpu::add(total, p.bias[row]);
  if (p.residual.data) total = gpu::add(total, p.residual.row(token)[row]);
  p.y.row(token)[row] = total;
}

// Shared memory of a block, in bytes.
inline int64_t float_memory(int64_t tokens, int64_t columns, bool norm) {
  const int64_t together = tokens == 1 ? 1 : 8, sums = float_warps * float_rows;
  return (norm ? std::max<int64_t>(units_of(columns), sums) : sums) * together * static_cast<int64_t>(sizeof(float));
}

inline void launch_floats(const FloatProduct& p, Accelerator& device) {
  const int64_t blocks = ceil_div(p.rows, float_rows), shared = float_memory(p.tokens, p.columns, bool(p.norm));
  if (p.tokens == 1)
    gpu::launch_early<float_products<1>, float_warps * 32>(device, {blocks}, shared, p);
  else
    gpu::launch_early<float_products<8>, float_warps * 32>(device, {blocks, ceil_div(p.tokens, 8)}, shared, p);
}

// Of y = x w^T, without norm, bias and residual.
inline FloatProduct float_product(const View& x, const View& w, const View& y) {
  FloatProduct p = {};
  p.w = {pointer<const float>(w), w.strides[0]}, p.x = lines_of<const float>(x), p.y = lines_of<float>(y);
  p.rows = static_cast<int>(w.shape[0]), p.columns = static_cast<int>(w.shape[1]);
  p.tokens = static_cast<int>(x.shape[0]), p.aligned = has_aligned_rows(x);
  return p;
}

}  // namespace consonant::GPU_BUILD::mma
