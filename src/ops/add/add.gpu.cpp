// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void add(Rows<const float> a, Rows<const float> b, bool vector, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) { y.row(r)[i] = a.row(r)[i] + b.row(vector ? 0 : r)[i]; });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& y = args.out[0];
  gpu::launch<add, elementwise_threads>(device, elementwise_grid(y), 0, rows_of<const float>(args.in[0]),
                                        rows_of<const float>(args.in[1]), args.in[1].shape.rank() == 1,
                                        rows_of<float>(y));
}

}  // namespace

GpuKernel add_gpu() { return {"add", Op::add, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
