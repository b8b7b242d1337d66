// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "ops/gpu_rows.hpp"
#include "ops/rope_angles/angles.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256, at_once = 256;

// They depend on nothing but the node, and an angle at a large position on their last bit: they come from the host, in
// a launch's arguments, which have room for this many.
struct Frequencies {
  float values[at_once];
};

// Frequencies first ... first + count - 1 of all tokens. The angle is rounded to float32 as in the reference; sine and
// cosine of it are right however large it is.
GPU_KERNEL void rope_angles(gpu::Ptr<const int32_t> pos, gpu::Ptr<const float> divisors, bool divided, float scale,
                            float magnitude, Frequencies frequencies, int64_t first, int count, Rows<float> y) {
  const int64_t at = gpu::block() * gpu::threads() + gpu::thread(), token = at / count;
  if (token >= y.rows) return;
  const int i = static_cast<int>(at - token * count);
  const float frequency = frequencies.values[i];
  const float angle =
      gpu::mul(static_cast<float>(pos[token]), gpu::mul(divided ? frequency / divisors[first + i] : frequency, scale));
  const auto to = y.row(token);
  to[first + i] = gpu::mul(gpu::cos(angle), magnitude);
  to[y.cols / 2 + first + i] = gpu::mul(gpu::sin(angle), magnitude);
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& y = node.outputs[0].shape;
  const int64_t threads = std::min<int64_t>(y.last() / 2, at_once) * y[0];
  if (ceil_div(threads, block_threads) > limits.grid) return {fmt::format("{} is too large", to_string(y))};
  return {};
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& y = args.out[0];
  const auto& rotary = args.attr<Rotary>();
  const bool divided = args.in.size() > 1;
  const int64_t half = rotary.dims / 2;
  Rotary unscaled = rotary;
  unscaled.scale = 1;
  for (int64_t first = 0; first < half; first += at_once) {
    const auto count = static_cast<int>(std::min<int64_t>(at_once, half - first));
    Frequencies frequencies = {};
    for (int i = 0; i < count; ++i) frequencies.values[i] = rope_frequency(unscaled, nullptr, first + i);
    gpu::launch<rope_angles, block_threads>(
        device, {ceil_div(y.shape[0] * count, block_threads)}, 0, pointer<const int32_t>(args.in[0]),
        divided ? pointer<const float>(args.in[1]) : gpu::Ptr<const float>(), divided, static_cast<float>(rotary.scale),
        static_cast<float>(rotary.magnitude), frequencies, first, count, rows_of<float>(y));
  }
}

}  // namespace

GpuKernel rope_angles_gpu() { return {"rope_angles", Op::rope_angles, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
