// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void put_beside(Rows<const float> x, int64_t column, Rows<float> y) {
  for_elements(y.rows, x.cols, [&](int64_t r, int64_t i) { y.row(r)[column + i] = x.row(x.rows == 1 ? 0 : r)[i]; });
}

// A launch a part.
void launch(const Args& args, Accelerator& device, std::byte*) {
  int64_t column = 0;
  for (const View& part : args.in) {
    gpu::launch<put_beside, elementwise_threads>(device, elementwise_grid(args.out[0].rows(), part.last()), 0,
                                                 rows_of<const float>(part), column, rows_of<float>(args.out[0]));
    column += part.last();
  }
}

}  // namespace

GpuKernel beside_gpu() { return {"beside", Op::beside, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
