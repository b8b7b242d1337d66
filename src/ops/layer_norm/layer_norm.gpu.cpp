// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/layer_norm.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

namespace {

// A block a row. It is bound by one read and one write of the row: what is read again comes from the cache. Two passes
// before the last: the squares of differences from the mean cancel nothing, however large the mean.
GPU_KERNEL void layer_norm(Rows<const float> x, gpu::Ptr<const float> w, gpu::Ptr<const float> b, Rows<float> y,
                           float epsilon) {
  const auto from = x.row(gpu::block());
  const auto to = y.row(gpu::block());
  const auto n = static_cast<float>(x.cols);
  float sum = 0;
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) sum += from[i];
  const float mean = gpu::block_sum(sum) / n;
  float squares = 0;
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) squares += (from[i] - mean) * (from[i] - mean);
  const float scale = 1 / gpu::sqrt(gpu::block_sum(squares) / n + epsilon);
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) to[i] = (from[i] - mean) * scale * w[i] + b[i];
}

template <int threads>
void launch_with(const Args& args, Accelerator& device) {
  gpu::launch<layer_norm, threads>(device, {args.out[0].rows()}, 0, rows_of<const float>(args.in[0]),
                                   pointer<const float>(args.in[1]), pointer<const float>(args.in[2]),
                                   rows_of<float>(args.out[0]), args.attr<LayerNormAttr>().epsilon);
}

// The order of a row's sums depends on its length alone.
void launch(const Args& args, Accelerator& device, std::byte*) {
  args.out[0].last() <= 256 ? launch_with<64>(args, device) : launch_with<256>(args, device);
}

}  // namespace

GpuKernel layer_norm_gpu() { return {"layer_norm", Op::layer_norm, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
