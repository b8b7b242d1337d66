// SPDX-License-Identifier: Apache-2.0
#include "ops/cumsum/cumsum.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256, each = 8;
constexpr int64_t tile_columns = block_threads * each;  // of a row, a block's

GPU_KERNEL void sum_tiles(Rows<const float> x, int64_t tiles, gpu::Ptr<float> sums) {
  const auto from = x.row(gpu::block() / tiles);
  const int64_t first = gpu::block() % tiles * tile_columns;
  float sum = 0;
  for (int64_t i = first + gpu::thread(); i < first + tile_columns && i < x.cols; i += gpu::threads()) sum += from[i];
  sum = gpu::block_sum(sum);
  if (gpu::thread() == 0) sums[gpu::block()] = sum;
}

// The sum of what all threads before this one give. Nothing is subtracted, so that an infinity stays one.
GPU_FN float sum_before(float x) {
  GPU_SHARED(float, parts, 32);
  const int lane = gpu::lane();
  for (int step = 1; step < gpu::lane_width; step *= 2) {
    const float other = gpu::shfl(x, lane >= step ? lane - step : lane);
    if (lane >= step) x += other;
  }
  if (lane == gpu::lane_width - 1) parts[gpu::warp()] = x;
  gpu::sync();
  float before = 0;
  for (int w = 0; w < gpu::warp(); ++w) before += parts[w];
  const float left = gpu::shfl(x, lane > 0 ? lane - 1 : 0);
  return lane > 0 ? before + left : before;
}

GPU_KERNEL void scan_tiles(Rows<const float> x, int64_t tiles, gpu::Ptr<const float> sums, Rows<float> y) {
  const int64_t row = gpu::block() / tiles, tile = gpu::block() % tiles,
                first = tile * tile_columns + gpu::thread() * each;
  const auto from = x.row(row);
  const auto to = y.row(row);
  float before = 0, own = 0;
  for (int64_t t = gpu::thread(); t < tile; t += gpu::threads()) before += sums[row * tiles + t];
  before = gpu::block_sum(before);
  for (int64_t i = first; i < first + each && i < x.cols; ++i) own += from[i];
  float sum = before + sum_before(own);
  for (int64_t i = first; i < first + each && i < x.cols; ++i) to[i] = sum += from[i];
}

int64_t tiles_of(int64_t n) { return ceil_div(n, tile_columns); }

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& shape = node.inputs[0].shape();
  if (shape.rows() * tiles_of(shape.last()) > limits.grid)
    return {fmt::format("{} has more than {} tiles", to_string(shape), limits.grid)};
  return wants_gpu_rows(node, limits);
}

int64_t scratch_bytes(const Node& node, const Limits&) {
  const Shape& shape = node.inputs[0].shape();
  return tiles_of(shape.last()) < 2 ? 0 : shape.rows() * tiles_of(shape.last()) * static_cast<int64_t>(sizeof(float));
}

// A row of more than one tile is read twice: for the tiles' sums, and for the sums within each. Bound by memory.
void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const auto x = rows_of<const float>(args.in[0]);
  const int64_t tiles = tiles_of(x.cols);
  const auto sums = gpu::pointer<float>(scratch, tiles < 2 ? 0 : x.rows * tiles * 4);
  if (tiles > 1) gpu::launch<sum_tiles, block_threads>(device, {x.rows * tiles}, 0, x, tiles, sums);
  const gpu::Ptr<const float> before = sums;
  gpu::launch<scan_tiles, block_threads>(device, {x.rows * tiles}, 0, x, tiles, before, rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel cumsum_gpu() { return {"cumsum", Op::cumsum, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
