// SPDX-License-Identifier: Apache-2.0
#include "ops/argmax/argmax.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/order.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int64_t part_columns = 8192;  // that a block reads

GPU_FN uint64_t smaller(uint64_t a, uint64_t b) { return b < a ? b : a; }

// The smallest key of a block's threads, in its first.
GPU_FN uint64_t block_least(uint64_t key) {
  GPU_SHARED(uint64_t, keys, 1024);
  keys[gpu::thread()] = key;
  gpu::sync();
  for (int step = gpu::threads() / 2; step > 0; step /= 2) {
    if (gpu::thread() < step) keys[gpu::thread()] = smaller(keys[gpu::thread()], keys[gpu::thread() + step]);
    gpu::sync();
  }
  return keys[0];
}

// A block looks at a part of a row, and leaves its best key; with one part a row it leaves the result.
GPU_KERNEL void best_of_parts(Rows<const float> x, int64_t parts, gpu::Ptr<uint64_t> keys, gpu::Ptr<int32_t> y) {
  const int64_t row = gpu::block() / parts, first = gpu::block() % parts * part_columns;
  const auto from = x.row(row);
  uint64_t best = last_key;
  for (int64_t i = first + gpu::thread(); i < first + part_columns && i < x.cols; i += gpu::threads())
    best = smaller(best, sort_key(gpu::to_bits(from[i]), i, true));
  best = block_least(best);
  if (gpu::thread() > 0) return;
  if (parts == 1)
    y[row] = index_of(best);
  else
    keys[gpu::block()] = best;
}

GPU_KERNEL void best_of_keys(gpu::Ptr<const uint64_t> keys, int64_t parts, gpu::Ptr<int32_t> y) {
  uint64_t best = last_key;
  for (int64_t i = gpu::thread(); i < parts; i += gpu::threads()) best = smaller(best, keys[gpu::block() * parts + i]);
  best = block_least(best);
  if (gpu::thread() == 0) y[gpu::block()] = index_of(best);
}

int64_t parts_of(int64_t n) { return ceil_div(n, part_columns); }

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& shape = node.inputs[0].shape();
  if (shape.rows() * parts_of(shape.last()) > limits.grid)
    return {fmt::format("{} has more than {} parts", to_string(shape), limits.grid)};
  const Refusal refusal = wants_gpu_shapes(node, limits);
  return refusal ? refusal : wants_rows_of(node, {DType::f32}, {DType::i32});
}

int64_t scratch_bytes(const Node& node, const Limits&) {
  const Shape& shape = node.inputs[0].shape();
  const int64_t parts = parts_of(shape.last());
  return parts == 1 ? 0 : shape.rows() * parts * static_cast<int64_t>(sizeof(uint64_t));
}

// Bound by reading x.
void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const auto x = rows_of<const float>(args.in[0]);
  const auto y = pointer<int32_t>(args.out[0]);
  const int64_t parts = parts_of(x.cols);
  const auto keys = gpu::pointer<uint64_t>(scratch, parts == 1 ? 0 : x.rows * parts * 8);
  if (x.cols <= 256)
    gpu::launch<best_of_parts, 64>(device, {x.rows}, 0, x, parts, keys, y);
  else
    gpu::launch<best_of_parts, 512>(device, {x.rows * parts}, 0, x, parts, keys, y);
  const gpu::Ptr<const uint64_t> best = keys;
  if (parts > 1) gpu::launch<best_of_keys, 64>(device, {x.rows}, 0, best, parts, y);
}

}  // namespace

GpuKernel argmax_gpu() { return {"argmax", Op::argmax, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
