// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

// A vector has one row of stride 0, which each r finds.
GPU_KERNEL void mul(Rows<const float> a, Rows<const float> b, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) { y.row(r)[i] = a.row(r)[i] * b.row(r)[i]; });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<mul, elementwise_threads>(device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]),
                                        rows_of<const float>(args.in[1]), rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel mul_gpu() { return {"mul", Op::mul, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
