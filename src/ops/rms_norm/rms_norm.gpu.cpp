// SPDX-License-Identifier: Apache-2.0
#include "ops/rms_norm/rms_norm.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/rms_norm/rms_norm_gpu.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

// A block has a row.
GPU_KERNEL void short_rms_norm(Rows<const float> x, gpu::Ptr<const float> w, Rows<float> y, float epsilon) {
  const auto from = x.row(gpu::block());
  const auto to = y.row(gpu::block());
  float sum = 0;
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) sum += from[i] * from[i];
  const float scale = norm_scale(gpu::block_sum(sum), x.cols, epsilon);
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) to[i] = from[i] * scale * w[i];
}

struct RmsNorm {
  Rows<const float> x;
  gpu::Ptr<const float> w;
  Rows<float> y;
  float epsilon;
  bool aligned;  // rows of x begin at multiples of 16 bytes
};

template <int Threads>
GPU_KERNEL void rms_norm(RmsNorm n) {
  constexpr int warps = Threads / gpu::lane_width, at_once = 1024;
  GPU_SHARED(float, sums, at_once);
  const auto from = n.x.row(gpu::block());
  const auto to = n.y.row(gpu::block());
  const int cols = static_cast<int>(n.x.cols), units = (cols + norm_unit - 1) / norm_unit;
  float total = 0;
  for (int first = 0; first < units; first += at_once) {
    const int here = units - first < at_once ? units - first : at_once;
    for (int u = gpu::warp(); u < here; u += warps) {
      Four four[norm_fours];
      GPU_UNROLL
      for (int i = 0; i < norm_fours; ++i) four[i] = load_four(from, norm_column(first + u, i), cols, n.aligned);
      const float sum = unit_squares(four);
      if (gpu::lane() == 0) sums[u] = sum;
    }
    gpu::sync();
    for (int u = 0; u < here; ++u) total += sums[u];
    gpu::sync();
  }
  const float scale = norm_scale(total, cols, n.epsilon);
  for (int i = gpu::thread(); i < cols; i += Threads) to[i] = from[i] * scale * n.w[i];
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const gpu::Grid grid = {y.rows()};
  const RmsNorm n = {rows_of<const float>(x), pointer<const float>(args.in[1]), rows_of<float>(y),
                     args.attr<RmsNormAttr>().epsilon, has_aligned_rows(x)};
  if (y.last() <= short_norm)
    gpu::launch<short_rms_norm, short_norm_threads>(device, grid, 0, n.x, n.w, n.y, n.epsilon);
  else if (y.last() <= 2048)
    gpu::launch<rms_norm<256>, 256>(device, grid, 0, n);
  else
    gpu::launch<rms_norm<1024>, 1024>(device, grid, 0, n);
}

}  // namespace

GpuKernel rms_norm_gpu() { return {"rms_norm", Op::rms_norm, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
