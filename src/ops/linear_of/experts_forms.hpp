// SPDX-License-Identifier: Apache-2.0
#pragma once

// Experts' products on tensor cores, by the type of the weights: each type's launches are compiled once, in
// experts_x.cuda.cu.
#include "device/accelerator.hpp"
#include "ops/kernel.hpp"

namespace consonant::GPU_BUILD::mma {

struct ExpertForms {
  int64_t (*least_memory)(int64_t columns);  // shared, of a block
  int64_t (*scratch)(int64_t pairs, int64_t experts, int64_t rows, int64_t columns, bool gated);
  void (*launch)(const Args& args, Accelerator& device, std::byte* scratch);
};

#define TYPE(name) ExpertForms experts_##name();
#include "ops/linear/mma.def"
#undef TYPE

// Nulls for a type that the tensor cores don't take.
inline ExpertForms experts_of(DType type) {
  switch (type) {
#define TYPE(name)  \
  case DType::name: \
    return experts_##name();
#include "ops/linear/mma.def"
#undef TYPE
    default:
      return {};
  }
}

}  // namespace consonant::GPU_BUILD::mma
