// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products on tensor cores, by the type of the weights: each type's launches are compiled once, in mma_x.cuda.cu.
#include "ops/linear/few_products.hpp"

namespace consonant::GPU_BUILD::mma {

struct Forms {
  int64_t least_memory;  // shared, of a block, for anything but few tokens
  // Of a block for few tokens.
  int64_t (*few_memory)(int64_t tokens, int64_t columns, bool gated);
  void (*launch_few)(const FewProducts& products, Accelerator& device);
  // Of linear for more tokens, in scratch memory for a node's capacity. `made`: the type whose records of x are there
  // already, or f32; what it returns is there then.
  int64_t (*scratch)(int64_t tokens, int64_t rows, int64_t columns, const Limits& limits);
  DType (*launch)(const Args& args, Accelerator& device, std::byte* scratch, DType made);
};

#define TYPE(name) Forms forms_##name();
#include "ops/linear/mma.def"
#undef TYPE
Forms forms_f32();  // of few rows, on no tensor core

// Nulls for a type that these kernels don't take.
inline Forms forms_of(DType type) {
  switch (type) {
    case DType::f32:
      return forms_f32();
#define TYPE(name)  \
  case DType::name: \
    return forms_##name();
#include "ops/linear/mma.def"
#undef TYPE
    default:
      return {};
  }
}

constexpr int64_t most_float_rows = 1024;  // of a float32 matrix, for which tiles would be better

// From so many tokens and rows on, weights are first decoded to halves (mma_halves.hpp).
constexpr int64_t halves_tokens = 128, halves_rows = 64;

}  // namespace consonant::GPU_BUILD::mma
