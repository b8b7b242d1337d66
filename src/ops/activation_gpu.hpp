// SPDX-License-Identifier: Apache-2.0
#pragma once

// The activations on an accelerator, and the kernel of an op that is one of them.
#include "ops/activation.hpp"
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

template <Activation f>
GPU_FN float activated(float x) {
  if constexpr (f == Activation::silu) return x / (1 + gpu::exp(-x));
  if constexpr (f == Activation::gelu) {  // x / 2 (1 + tanh u) = x / (1 + exp(-2u))
    const float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return x / (1 + gpu::exp(-2 * u));
  }
  if constexpr (f == Activation::gelu_erf) {
    constexpr NormalTail tail;
    const float a = gpu::abs(x);
    float p = tail.coefficients[0];
    GPU_UNROLL
    for (int i = 1; i < tail.count; ++i) p = p * a + tail.coefficients[i];
    // 0 times x keeps what is no number, and of minus infinity makes it so, as the product x Phi(x) does.
    return (x < 0 ? 0 * x : x) - (a < tail.end ? a * gpu::exp(p) : 0);
  }
  if constexpr (f == Activation::relu) return x < 0 ? 0 : x;
  if constexpr (f == Activation::relu_squared) return x < 0 ? 0 : x * x;
  if constexpr (f == Activation::sigmoid) return 1 / (1 + gpu::exp(-x));
  if constexpr (f == Activation::elu) {  // exp(x) - 1 = 2 t / (1 - t) with t = tanh(x / 2): nothing cancels near zero
    const float t = gpu::tanh(x / 2);
    return x < 0 ? 2 * t / (1 - t) : x;
  }
  if constexpr (f == Activation::tanh) return gpu::tanh(x);
}

template <Activation f>
GPU_KERNEL void activate_elements(Rows<const float> x, Rows<float> y) {
  for_elements(y.rows, y.cols, [&](int64_t r, int64_t i) { y.row(r)[i] = activated<f>(x.row(r)[i]); });
}

template <Activation f>
GpuKernel activation_gpu(std::string_view name, Op op) {
  return {name, op, wants_gpu_rows, nullptr, [](const Args& args, Accelerator& device, std::byte*) {
            gpu::launch<activate_elements<f>, elementwise_threads>(device, elementwise_grid(args.out[0]), 0,
                                                                   rows_of<const float>(args.in[0]),
                                                                   rows_of<float>(args.out[0]));
          }};
}

}  // namespace consonant::GPU_BUILD
