// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of few tokens on CUDA's tensor cores, as the launches of linear and linear_set want them.
#include <span>

#include "device/accelerator.hpp"
#include "ops/activation.hpp"
#include "ops/kernel.hpp"

namespace consonant::GPU_BUILD {

constexpr int64_t most_few_tokens = 4;

// Up to three matrices of one type times the same x; or two of equal size, activation(w0 x) * (w1 x).
struct FewProducts {
  const View* x;               // [token, columns] float32, its rows contiguous
  const View* norm = nullptr;  // [columns]: x is normalised by its root mean square first
  float epsilon = 0;
  std::span<const View* const> weights;
  std::span<const View* const> biases;  // one a weight, null where there is none; empty: none at all
  const View* residual = nullptr;       // of a single product
  std::span<const View* const> y;       // one a weight; gated: one
  bool gated = false;
  Activation activation = Activation::silu;  // or gelu
};

// Whether these kernels take so many tokens.
bool takes_few_products(DType type, int64_t tokens, int64_t columns, bool gated, const Limits& limits);

// One launch.
void launch_few_products(const FewProducts& products, Accelerator& device);

// The same for products of one input by weights of two types, which these kernels take each; not gated. False, and
// nothing is done, for pairs that no kernel is made for.
bool launch_few_products(const FewProducts& first, const FewProducts& second, Accelerator& device);

// linear_mma's launch. `made`: the type of the weights of an earlier launch with the same x, whose records of x are in
// the scratch memory still; DType::f32 if there are none. Returns that type for the next one.
DType launch_linear_mma(const Args& args, Accelerator& device, std::byte* scratch, DType made);

}  // namespace consonant::GPU_BUILD
