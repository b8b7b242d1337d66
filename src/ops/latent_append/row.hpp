// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/kv_cache.hpp"

namespace consonant {

// The row of a token, both parts side by side.
inline void latent_row(const Args& args, int64_t token, float* row) {
  const View &latent = args.in[1], &turned = args.in[2];
  std::copy_n(latent.row<float>(token), latent.last(), row);
  std::copy_n(turned.row<float>(token), turned.last(), row + latent.last());
}

// The page that a token's row belongs to.
inline KvPage latent_page(const Args& args, int64_t token) {
  const int32_t position = args.in[3].as<int32_t>()[token], sequence = args.in[4].as<int32_t>()[token];
  return {args.out[0], StateKind::values, args.in[5].row<int32_t>(sequence)[position / kv_page]};
}

// Refuses parts that aren't float32 or whose rows aren't contiguous.
inline Refusal wants_latent_parts(const Node& node) {
  for (size_t i = 1; i < 3; ++i) {
    const Tensor& part = node.inputs[i];
    if (part.type() != DType::f32) return {"latent and turned must be f32"};
    if (part.shape().last() > 1 && part.node->outputs[static_cast<size_t>(part.output)].strides[1] != 1)
      return {"the rows of latent and turned must be contiguous"};
  }
  return {};
}

}  // namespace consonant
