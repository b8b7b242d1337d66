// SPDX-License-Identifier: Apache-2.0
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void snake(Rows<const float> x, gpu::Ptr<const float> a, gpu::Ptr<const float> b, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) {
    const float v = x.row(r)[i];
    // An angle of some turns has lost a good part of a float's bits; what they are short of goes in by the derivative.
    const double exact = ::exp(static_cast<double>(static_cast<float>(a[i]))) * v;
    const auto angle = static_cast<float>(exact), rest = static_cast<float>(exact - angle);
    const float wave = gpu::fma(rest, gpu::cos(angle), gpu::sin(angle));
    y.row(r)[i] = v + wave * wave / (gpu::exp(b[i]) + 1e-9f);
  });
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  gpu::launch<snake, elementwise_threads>(device, elementwise_grid(args.out[0]), 0, rows_of<const float>(args.in[0]),
                                          pointer<const float>(args.in[1]), pointer<const float>(args.in[2]),
                                          rows_of<float>(args.out[0]));
}

}  // namespace

GpuKernel snake_gpu() { return {"snake", Op::snake, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
