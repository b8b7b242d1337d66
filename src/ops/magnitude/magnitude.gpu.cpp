// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

// By a power of two, which rounds nothing, the numbers come to where their squares neither overflow nor vanish.
GPU_FN float length(float re, float im) {
  const float a = gpu::abs(re), b = gpu::abs(im), most = a > b ? a : b;
  const float unit = most > 0x1p60f ? 0x1p64f : most < 0x1p-60f ? 0x1p-64f : 1;
  const float u = re / unit, v = im / unit;
  return gpu::sqrt(u * u + v * v) * unit;
}

GPU_KERNEL void magnitude(Rows<const float> x, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) { y.row(r)[i] = length(x.row(r)[i], x.row(r)[y.cols + i]); });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<magnitude, elementwise_threads>(device, elementwise_grid(args.out[0]), 0,
                                              rows_of<const float>(args.in[0]), rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel magnitude_gpu() { return {"magnitude", Op::magnitude, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
