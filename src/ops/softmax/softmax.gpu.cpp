// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/softmax.hpp"
#include "ops/gpu_rows.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

// A block a row: the greatest, the sum, the result. Rows of up to some ten thousand columns stay in a cache between the
// passes, so that memory is read and written once.
GPU_KERNEL void softmax(Rows<const float> x, Rows<float> y) {
  const auto from = x.row(gpu::block());
  const auto to = y.row(gpu::block());
  float top = -INFINITY, sum = 0;
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) {
    const float v = from[i];
    top = v > top ? v : top;
  }
  top = gpu::block_max(top);
  const float shift = top == -INFINITY ? 0 : top;
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) sum += gpu::exp(from[i] - shift);
  sum = gpu::block_sum(sum);
  const float factor = sum == 0 ? 0 : 1 / sum;
  for (int64_t i = gpu::thread(); i < x.cols; i += gpu::threads()) to[i] = gpu::exp(from[i] - shift) * factor;
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& y = args.out[0];
  const auto x = rows_of<const float>(args.in[0]);
  if (y.last() <= 256)
    gpu::launch<softmax, 64>(device, {y.rows()}, 0, x, rows_of<float>(y));
  else if (y.last() <= 4096)
    gpu::launch<softmax, 256>(device, {y.rows()}, 0, x, rows_of<float>(y));
  else
    gpu::launch<softmax, 1024>(device, {y.rows()}, 0, x, rows_of<float>(y));
}

}  // namespace

GpuKernel softmax_gpu() { return {"softmax", Op::softmax, wants_gpu_rows, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
