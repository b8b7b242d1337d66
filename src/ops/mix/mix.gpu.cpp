// SPDX-License-Identifier: Apache-2.0
#include "ops/mix/mix.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

// Reads x once: bound by that.
GPU_KERNEL void mix(Rows<const float> x, Rows<const float> weights, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
    float sum = 0;
    for (int64_t u = 0; u < weights.cols; ++u) sum = gpu::fma(x.row(r * weights.cols + u)[i], weights.row(r)[u], sum);
    y.row(r)[i] = sum;
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<mix, elementwise_threads>(device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]),
                                        rows_of<const float>(args.in[1]), rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel mix_gpu() { return {"mix", Op::mix, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
