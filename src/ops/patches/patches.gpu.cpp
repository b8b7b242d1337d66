// SPDX-License-Identifier: Apache-2.0
#include "ops/patches/patches.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

// Rows of x outside of their group: the edge's.
GPU_KERNEL void patches(Rows<const float> x, int64_t time, int64_t frames, PatchesAttr a, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t at) {
    const int64_t group = r / frames, tap = at / x.cols, i = at - tap * x.cols;
    int64_t row = (r - group * frames) * a.stride - a.before + tap;
    const bool inside = row >= 0 && row < time;
    if (!inside) row = row < 0 ? -row : 2 * (time - 1) - row;
    y.row(r)[at] = inside || a.edge == Edge::mirror ? static_cast<float>(x.row(group * time + row)[i]) : 0;
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
