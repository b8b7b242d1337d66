// SPDX-License-Identifier: Apache-2.0
#include "ops/clamp/clamp.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void clamp(Rows<const float> x, ClampAttr a, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
    const float v = x.row(r)[i];
    y.row(r)[i] = v < a.least ? a.least : v > a.most ? a.most : v;
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<clamp, elementwise_threads>(device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]),
                                          args.attr<ClampAttr>(), rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel clamp_gpu() { return {"clamp", Op::clamp, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
