// SPDX-License-Identifier: Apache-2.0
#include "ops/mix/mix.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

// Reads x once: bound by that, and for few tokens by the latency of one read, so that all of a batch of reads are asked
// for before the first is used.
GPU_KERNEL void mix(Rows<const float> x, Rows<const float> weights, Rows<const float> residual, Rows<float> y) {
  constexpr int together = 8;
  gpu::wait_for_inputs();
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
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
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  Rows<const float> residual = {};
  if (args.in.size() > 2) residual = rows_of<const float>(args.in[2]);
  gpu::launch_early<mix, elementwise_threads>(device, elementwise_grid(args.out[0]), 0,
                                              rows_of<const float>(args.in[0]), rows_of<const float>(args.in[1]),
                                              residual, rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel mix_gpu() { return {"mix", Op::mix, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
