// SPDX-License-Identifier: Apache-2.0
#include "ops/rope/rope.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/rope/rope_gpu.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;

// A thread a pair, or one number that passes unchanged: a head has `turns` of the one, then `passes` of the other.
// Blocks along y share a token.
GPU_KERNEL void rope(Rows<const float> x, Rows<const float> angles, Rows<float> y, int turns, int passes,
                     bool neighbours) {
  const int64_t token = gpu::block(), at = gpu::block_y() * gpu::threads() + gpu::thread();
  const int width = turns + passes;
  if (at >= x.inner * width) return;
  const int head = static_cast<int>(at) / width, i = static_cast<int>(at) % width;
  const auto from = x.data + (token * x.outer_stride + head * x.inner_stride);
  const auto to = y.data + (token * y.outer_stride + head * y.inner_stride);
  if (i >= turns) {
    to[turns + i] = from[turns + i];
    return;
  }
  const int first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : turns + i;
  const auto angle = angles.row(token);
  const Pair pair = turned(from[first], from[second], angle[i], angle[turns + i]);
  to[first] = pair.first;
  to[second] = pair.second;
}

// The numbers of a head, and of threads a token has.
int64_t width_of(const Node& node) { return node.outputs[0].shape.last() - node.attr<RopeAttr>().dims / 2; }

Refusal can_run(const Node& node, const Limits& limits) {
  const int64_t threads = width_of(node) * node.outputs[0].shape[1];
  if (ceil_div(threads, block_threads) > limits.grid_yz) return {"the heads of a token are too long"};
  return wants_gpu_rows(node, limits);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& y = args.out[0];
  const auto& attr = args.attr<RopeAttr>();
  const int64_t turns = attr.dims / 2, passes = y.last() - attr.dims;
  gpu::launch<rope, block_threads>(device, {y.shape[0], ceil_div(y.shape[1] * (turns + passes), block_threads)}, 0,
                                   rows_of<const float>(args.in[0]), rows_of<const float>(args.in[1]),
                                   rows_of<float>(y), static_cast<int>(turns), static_cast<int>(passes),
                                   attr.neighbours);
}

}  // namespace

GpuKernel rope_gpu() { return {"rope", Op::rope, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
