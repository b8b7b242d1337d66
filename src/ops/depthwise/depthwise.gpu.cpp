// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void depthwise(Rows<const float> x, gpu::Ptr<const float> w, gpu::Ptr<const float> b, int kernel,
                          Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t t, int64_t c) {
    float sum = b[c];
    for (int k = 0; k < kernel; ++k) sum = gpu::fma(w[k * y.cols + c], x.row(t + k)[c], sum);
    y.row(t)[c] = sum;
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& y = args.out[0];
  gpu::launch<depthwise, elementwise_threads>(device, elementwise_grid(y), 0, rows_of<const float>(args.in[0]),
                                              pointer<const float>(args.in[1]), pointer<const float>(args.in[2]),
                                              static_cast<int>(args.in[1].shape[0] / y.last()), rows_of<float>(y));
}

}  // namespace

GpuKernel depthwise_gpu() { return {"depthwise", Op::depthwise, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
