// SPDX-License-Identifier: Apache-2.0
#include "ops/log_floor/log_floor.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void log_floor(Rows<const float> x, LogFloorAttr a, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
    const float v = x.row(r)[i];
    y.row(r)[i] = gpu::log(v > a.least ? v : a.least);
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<log_floor, elementwise_threads>(device, elementwise_grid(args.out[0]), 0,
                                              rows_of<const float>(args.in[0]), args.attr<LogFloorAttr>(),
                                              rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel log_floor_gpu() { return {"log_floor", Op::log_floor, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
