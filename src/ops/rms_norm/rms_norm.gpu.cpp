// SPDX-License-Identifier: Apache-2.0
#include "ops/rms_norm/rms_norm.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/rms_norm/rms_norm_gpu.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

GPU_KERNEL void rms_norm(Rows<const float> x, gpu::Ptr<const float> w, Rows<float> y, float epsilon) {
  const auto from = x.row(gpu::block());  // a block a row
  const auto to = y.row(gpu::block());
  float sum = 0;
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) sum += from[i] * from[i];
  const float scale = 1 / gpu::sqrt(gpu::block_sum(sum) / static_cast<float>(x.cols) + epsilon);
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) to[i] = from[i] * scale * w[i];
}

template <int threads>
void launch_with(const Args& args, Accelerator& device) {
  gpu::launch<rms_norm, threads>(device, {args.out[0].rows()}, 0, rows_of<const float>(args.in[0]),
                                 pointer<const float>(args.in[1]), rows_of<float>(args.out[0]),
                                 args.attr<RmsNormAttr>().epsilon);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const int threads = rms_norm_threads(args.out[0].last());
  if (threads == 64) return launch_with<64>(args, device);
  threads == 256 ? launch_with<256>(args, device) : launch_with<1024>(args, device);
}

}  // namespace

GpuKernel rms_norm_gpu() { return {"rms_norm", Op::rms_norm, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
