// SPDX-License-Identifier: Apache-2.0
// Bound by the latency of a launch for a token; for many, by the bytes of x and z, the second time from the cache.
#include "ops/gated_norm/gated_norm.hpp"
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

namespace {

// A block a group of a row.
GPU_KERNEL void gated_norm(Rows<const float> x, Rows<const float> z, gpu::Ptr<const float> w, Rows<float> y,
                           int64_t groups, float epsilon) {
  const int64_t row = gpu::block() / groups, n = x.cols / groups, first = gpu::block() % groups * n;
  const auto from = x.row(row) + first;
  const auto gate = z.row(row) + first;
  const auto to = y.row(row) + first;
  const auto gated = [&](int64_t i) { return activated<Activation::silu>(gate[i]) * from[i]; };
  float sum = 0;
  for (int64_t i = gpu::thread(); i < n; i += gpu::threads()) {
    const float u = gated(i);
    sum = gpu::fma(u, u, sum);
  }
  const float scale = 1 / gpu::sqrt(gpu::block_sum(sum) / static_cast<float>(n) + epsilon);
  for (int64_t i = gpu::thread(); i < n; i += gpu::threads()) to[i] = gated(i) * scale * w[first + i];
}

template <int threads>
void launch_with(const Args& args, Accelerator& device) {
  const auto& attr = args.attr<GatedNormAttr>();
  gpu::launch<gated_norm, threads>(device, {args.out[0].rows() * attr.groups}, 0, rows_of<const float>(args.in[0]),
                                   rows_of<const float>(args.in[1]), pointer<const float>(args.in[2]),
                                   rows_of<float>(args.out[0]), attr.groups, attr.epsilon);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  if (args.out[0].shape.count() == 0) return;
  // By the width of a group alone, so that rows don't depend on how many there are.
  const int64_t n = args.out[0].last() / args.attr<GatedNormAttr>().groups;
  if (n <= 64) return launch_with<64>(args, device);
  n <= 1024 ? launch_with<256>(args, device) : launch_with<1024>(args, device);
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (node.outputs[0].shape.rows() * node.attr<GatedNormAttr>().groups > limits.grid)
    return {"more groups than a grid has blocks"};
  return wants_gpu_rows(node, limits);
}

}  // namespace

GpuKernel gated_norm_gpu() { return {"gated_norm", Op::gated_norm, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
