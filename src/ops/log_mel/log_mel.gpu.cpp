// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/gpu_rows.hpp"
#include "ops/log_mel/log_mel.hpp"

namespace consonant::GPU_BUILD {

namespace {

// The energies of a window of sound are a few megabytes at most, and the second time they come from the cache: two
// short launches, of this many blocks at most.
constexpr int block_threads = 256, most_blocks = 256;

GPU_FN float level(float x) { return gpu::log10(x > 1e-10f ? x : 1e-10f); }

// fn(row, column) for the elements of this thread.
template <class F>
GPU_FN void for_all(const Rows<const float>& x, const F& fn) {
  const int64_t count = x.rows * x.cols, stride = gpu::blocks() * gpu::threads();
  for (int64_t at = gpu::block() * gpu::threads() + gpu::thread(); at < count; at += stride)
    fn(at / x.cols, at % x.cols);
}

// The greatest energy that each block has seen. As in the reference, what is no number is as good as none.
GPU_KERNEL void greatest_energies(Rows<const float> x, gpu::Ptr<float> greatest) {
  float most = 0;
  for_all(x, [&](int64_t r, int64_t i) {
    const float energy = x.row(r)[i];
    most = energy > most ? energy : most;
  });
  most = gpu::block_max(most);
  if (gpu::thread() == 0) greatest[gpu::block()] = most;
}

GPU_KERNEL void log_mel(Rows<const float> x, gpu::Ptr<const float> greatest, gpu::Ptr<const float> before,
                        Rows<float> y, gpu::Ptr<float> after) {
  const float energy = gpu::thread() < gpu::blocks() ? greatest[gpu::thread()] : 0.0f;
  const float here = level(gpu::block_max(energy)), earlier = before[0], peak = here > earlier ? here : earlier;
  for_all(x, [&](int64_t r, int64_t i) {
    const float v = level(x.row(r)[i]);
    y.row(r)[i] = ((v > peak - 8 ? v : peak - 8) + 4) / 4;
  });
  if (gpu::block() == 0 && gpu::thread() == 0) after[0] = peak;
}

int64_t scratch(const Node&, const Limits&) { return most_blocks * static_cast<int64_t>(sizeof(float)); }

void launch(const Args& args, Accelerator& device, std::byte* memory) {
  static_assert(most_blocks <= block_threads);
  const auto x = rows_of<const float>(args.in[0]);
  const int64_t blocks = std::clamp<int64_t>(ceil_div(x.rows * x.cols, block_threads), 1, most_blocks);
  const auto greatest = gpu::pointer<float>(memory, scratch(*args.node, device.limits()));
  gpu::launch<greatest_energies, block_threads>(device, {blocks}, 0, x, greatest);
  gpu::launch<log_mel, block_threads>(device, {blocks}, 0, x, gpu::Ptr<const float>(greatest),
                                      pointer<const float>(args.in[1]), rows_of<float>(args.out[0]),
                                      pointer<float>(args.out[1]));
}

}  // namespace

GpuKernel log_mel_gpu() { return {"log_mel", Op::log_mel, wants_gpu_rows, scratch, launch}; }

}  // namespace consonant::GPU_BUILD
