// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/scale.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void scale(Rows<const float> x, float factor, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) { y.row(r)[i] = x.row(r)[i] * factor; });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<scale, elementwise_threads>(device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]),
                                          args.attr<ScaleAttr>().factor, rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel scale_gpu() { return {"scale", Op::scale, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
