// SPDX-License-Identifier: Apache-2.0
#include "ops/mix/mix.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int mix_threads = 128;

// Reads x once: bound by that, and for few tokens by the latency of one read. So a thread has one element only, and
// asks for a batch of what it adds up before it uses the first.
GPU_KERNEL void mix(Rows<const float> x, Rows<const float> weights, Rows<const float> residual, Rows<float> y,
                    int64_t parts) {
  constexpr int together = 8;
  gpu::wait_for_inputs();
  const int64_t r = gpu::block() / parts, i = gpu::block() % parts * mix_threads + gpu::thread();
  if (i >= y.cols) return;
  const auto used = static_cast<int>(weights.cols);
  const float more = residual.data ? residual.row(r)[i] : 0;
  float sum = 0;
  for (int first = 0; first < used; first += together) {
    float of[together], by[together];
    GPU_UNROLL
    for (int u = 0; u < together; ++u) {
      const int at = first + u < used ? first + u : used - 1;
      of[u] = x.row(r * used + at)[i], by[u] = weights.row(r)[at];
    }
    GPU_UNROLL
    for (int u = 0; u < together; ++u)
      if (first + u < used) sum = gpu::fma(of[u], by[u], sum);
  }
  y.row(r)[i] = residual.data ? gpu::add(sum, more) : sum;
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_gpu_rows(node, limits)) return refusal;
  const Shape& y = node.outputs[0].shape;
  if (y[0] > limits.grid / std::max<int64_t>(1, ceil_div(y[1], mix_threads)))
    return {fmt::format("{} has more parts than a grid has blocks", to_string(y))};
  return {};
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& y = args.out[0];
  const int64_t parts = ceil_div(y.last(), mix_threads);
  Rows<const float> residual = {};
  if (args.in.size() > 2) residual = rows_of<const float>(args.in[2]);
  gpu::launch_early<mix, mix_threads>(device, {y.rows() * parts}, 0, rows_of<const float>(args.in[0]),
                                      rows_of<const float>(args.in[1]), residual, rows_of<float>(y), parts);
}

}  // namespace

GpuKernel mix_gpu() { return {"mix", Op::mix, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
