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
  bool aligned;  // w, and rows of x and y, begin at multiples of 16 bytes
  bool fixed;    // w is a weight, there before any kernel
};

constexpr int long_threads = 1024;

// A lane's columns of a unit, scaled and weighed.
GPU_FN void store_normed(const RmsNorm& n, gpu::Ptr<float> to, int column, const Four& x, float scale, const Four& w) {
  const int cols = static_cast<int>(n.x.cols);
  Four y;
  GPU_UNROLL
  for (int j = 0; j < 4; ++j) y.x[j] = x.x[j] * scale * w.x[j];
  if (n.aligned && column + 4 <= cols)
    return gpu::store16(
        to + column, gpu::U4{gpu::to_bits(y.x[0]), gpu::to_bits(y.x[1]), gpu::to_bits(y.x[2]), gpu::to_bits(y.x[3])});
  GPU_UNROLL
  for (int j = 0; j < 4; ++j)
    if (column + j < cols) to[column + j] = y.x[j];
}

// A row of no more units than warps, so that all of it is in registers. Bound by the latency of one read, and of the
// sum over the warps; the weights come while the kernel before ends.
template <int Threads>
GPU_KERNEL void held_rms_norm(RmsNorm n) {
  constexpr int warps = Threads / gpu::lane_width;
  GPU_SHARED(float, sums, warps);
  const int cols = static_cast<int>(n.x.cols), units = (cols + norm_unit - 1) / norm_unit, unit = gpu::warp();
  Four x[norm_fours], w[norm_fours];
  if (!n.fixed) gpu::wait_for_inputs();
  GPU_UNROLL
  for (int i = 0; i < norm_fours; ++i) w[i] = load_four(n.w, norm_column(unit, i), cols, n.aligned);
  if (n.fixed) gpu::wait_for_inputs();
  const auto from = n.x.row(gpu::block());
  const auto to = n.y.row(gpu::block());
  GPU_UNROLL
  for (int i = 0; i < norm_fours; ++i) x[i] = load_four(from, norm_column(unit, i), cols, n.aligned);
  const float sum = unit_squares(x);
  if (gpu::lane() == 0) sums[unit] = sum;
  gpu::sync();
  float total = 0;
  for (int u = 0; u < units; ++u) total += sums[u];
  const float scale = norm_scale(total, cols, n.epsilon);
  GPU_UNROLL
  for (int i = 0; i < norm_fours; ++i) store_normed(n, to, norm_column(unit, i), x[i], scale, w[i]);
}

GPU_KERNEL void rms_norm(RmsNorm n) {
  constexpr int warps = long_threads / gpu::lane_width, at_once = 1024;
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
  for (int i = gpu::thread(); i < cols; i += long_threads) to[i] = from[i] * scale * n.w[i];
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const gpu::Grid grid = {y.rows()};
  const bool aligned =
      has_aligned_rows(x) && has_aligned_rows(y) && reinterpret_cast<uintptr_t>(args.in[1].data) % 16 == 0;
  const bool fixed = args.node->inputs.size() > 1 && args.node->inputs[1].node->op == op_weight;
  const RmsNorm n = {rows_of<const float>(x),
                     pointer<const float>(args.in[1]),
                     rows_of<float>(y),
                     args.attr<RmsNormAttr>().epsilon,
                     aligned,
                     fixed};
  const int64_t units = ceil_div(y.last(), norm_unit);
  const auto held = [](int threads) { return threads / gpu::lane_width; };
  if (y.last() <= short_norm)
    gpu::launch<short_rms_norm, short_norm_threads>(device, grid, 0, n.x, n.w, n.y, n.epsilon);
  else if (units <= held(256))
    gpu::launch_early<held_rms_norm<256>, 256>(device, grid, 0, n);
  else if (units <= held(long_threads))
    gpu::launch_early<held_rms_norm<long_threads>, long_threads>(device, grid, 0, n);
  else
    gpu::launch<rms_norm, long_threads>(device, grid, 0, n);
}

}  // namespace

GpuKernel rms_norm_gpu() { return {"rms_norm", Op::rms_norm, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
