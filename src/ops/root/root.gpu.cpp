// SPDX-License-Identifier: Apache-2.0
#include "ops/root/root.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void root(Rows<const float> x, RootAttr a, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
    const float v = x.row(r)[i];
    y.row(r)[i] = gpu::sqrt(v + a.plus);
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<root, elementwise_threads>(device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]),
                                         args.attr<RootAttr>(), rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel root_gpu() { return {"root", Op::root, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
