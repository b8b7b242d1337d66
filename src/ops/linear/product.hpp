// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/kernel.hpp"
#include "tensor/packed.hpp"

namespace consonant {

// The numbers of a linear node's step, or of one expert's part of a linear_of node's, as kernels pass them on: y = x
// w^T + bias + residual.
struct Product {
  PackedShape weights{};              // [outputs, inputs]
  const std::byte* packed = nullptr;  // the weights in rows8, or
  const std::byte* plain = nullptr;   // as in the file: then each group is packed into scratch when its turn comes
  const std::byte* x = nullptr;
  int64_t x_stride = 0;  // bytes
  // A token's k inputs in that many parts of equal length, so many bytes apart: a convolution's. For float inputs.
  int64_t taps = 1, tap_stride = 0;
  bool x_is_int8 = false;
  int parts = 1;  // of 8 bits, of x
  int64_t tokens = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  const float* bias = nullptr;
  const float* residual = nullptr;
  int64_t residual_stride = 0;

  Product() = default;
  explicit Product(const Args& args);
};

// What a chunk computes: groups of eight outputs for a block of tokens.
struct Patch {
  int64_t first_group, last_group, first_token, last_token;
};

// Tokens that share a pass over a group, and groups a chunk; see linear.cpu.cpp.
struct Cut {
  static constexpr int64_t most_tokens = 144;  // of a block

  int64_t token_block, group_block, token_blocks, group_blocks;

  explicit Cut(const Product& p);
  Patch patch(const Product& p, int64_t chunk) const;
};

// x in float32, weights of any type.
int64_t float_scratch(const Product& p, const Cut& cut);
void multiply_float(const Product& p, const Patch& patch, std::byte* scratch);

// x in q8_x or q16_x, weights in blocks.
int64_t int8_scratch(const Product& p, const Cut& cut);
void multiply_int8(const Product& p, const Patch& patch, std::byte* scratch);

// Floats that the facts of tokens take: at most four a block of x.
inline int64_t facts_of(const Product& p, int64_t tokens) { return p.weights.k / 32 * 4 * tokens; }

// A group in rows8, wherever its weights lie; `room` holds group_bytes where they are plain.
inline const std::byte* packed_group(const Product& p, int64_t group, std::byte* room) {
  const PackedShape& w = p.weights;
  if (p.packed) return p.packed + group * w.group_bytes;
  const PackedShape alone{w.type, w.rows - group * 8 < 8 ? w.rows - group * 8 : 8, w.k, w.group_bytes};
  pack_groups(alone, p.plain + group * 8 * row_bytes(w.type, w.k), room, 0, 1);
  return room;
}

// Stores eight sums of a token, with bias and residual added as separate nodes would.
inline void store_sums(const Product& p, int64_t group, int64_t token, const float* sums) {
  const int64_t row = group * 8, rows = p.weights.rows - row < 8 ? p.weights.rows - row : 8;
  float* y = p.y + token * p.y_stride + row;
  const float* residual = p.residual ? p.residual + token * p.residual_stride + row : nullptr;
  const auto store = [&](int64_t n) {
    for (int64_t r = 0; r < n; ++r) {
      float sum = sums[r];
      if (p.bias) sum += p.bias[row + r];
      if (residual) sum += residual[r];
      y[r] = sum;
    }
  };
  if (rows == 8) return store(8);  // unrolled
  store(rows);
}

}  // namespace consonant
