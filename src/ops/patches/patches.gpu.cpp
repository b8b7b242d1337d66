// SPDX-License-Identifier: Apache-2.0
#include "ops/patches/patches.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void patches(Rows<const float> x, int64_t time, int64_t frames, PatchesAttr a, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t at) {
    const int64_t group = r / frames, tap = at / x.cols, i = at - tap * x.cols;
    const int64_t row = edge_row(a.edge, (r - group * frames) * a.stride - a.before + tap, time);
    y.row(r)[at] = row < 0 ? 0 : static_cast<float>(x.row(group * time + row)[i]);
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  if (x.shape[0] == 0) return;
  gpu::launch<patches, elementwise_threads>(device, elementwise_grid(y), 0, rows_of<const float>(x), x.shape[1],
                                            y.shape[0] / x.shape[0], args.attr<PatchesAttr>(), rows_of<float>(y));
}

}  // namespace

GpuKernel patches_gpu() { return {"patches", Op::patches, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
