// SPDX-License-Identifier: Apache-2.0
#include "ops/pad_rows/pad_rows.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void pad_rows(Rows<const float> x, PadRowsAttr a, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
    const int64_t from = edge_row(a.edge, r - a.before, x.rows);
    y.row(r)[i] = from < 0 ? 0 : static_cast<float>(x.row(from)[i]);
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<pad_rows, elementwise_threads>(device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]),
                                             args.attr<PadRowsAttr>(), rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel pad_rows_gpu() { return {"pad_rows", Op::pad_rows, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
