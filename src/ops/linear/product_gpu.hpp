// SPDX-License-Identifier: Apache-2.0
#pragma once

// y = x w^T with float32 activations on an accelerator. Two kernels compute it, for few tokens and for many, with the
// same bits:
//
//   k is cut into units of neighbours: a block of 32, or 16 bytes of a plain matrix. Unit u belongs to chain u %
//   chains. Block types:  chain += scale * dot (+ min * sum of x), by unit or by half unit as the type has scales,
//                 dot = the quants times x, from zero, dword by dword in `dword_order`; quants of a type with a minimum
//                 are taken from the middle of their range, which keeps what dot and min cancel small
//   plain types:  chain += w x, element by element
//   y = the chains' sum, in order, + bias + residual
//
// All of it by gpu::fma and gpu::add, so that no compiler rounds otherwise. The number of chains follows from the
// matrix alone: a token's result doesn't depend on the batch.
#include <algorithm>
#include <bit>

#include "ops/gpu_rows.hpp"
#include "ops/packed_gpu.hpp"

namespace consonant::GPU_BUILD {

// What a product's weights consist of, as they lie in memory.
template <DType Type, bool Blocks = has_blocks(Type)>
struct ProductUnit {
  using Word = Stored<Type>;
  static constexpr int size = 16 / static_cast<int>(sizeof(Word));
  static constexpr int halves = 1;
  static constexpr bool minimum = false;
  static constexpr int middle = 0;
};
template <DType Type>
struct ProductUnit<Type, true> {
  using Word = uint32_t;
  static constexpr int size = 32;
  static constexpr int halves = PackedGroup<Type>::halves ? 2 : 1;  // of a unit, with scales of their own
  static constexpr bool minimum = PackedGroup<Type>::minimum;
  static constexpr int middle = minimum ? 1 << (block_layout(Type).base_bits + block_layout(Type).upper_bits - 1) : 0;

  // For quants less `middle`.
  GPU_FN static ScaleMin from_middle(const ScaleMin& s) {
    if constexpr (!minimum) return s;
    return {s.scale, gpu::fma(s.scale, middle, s.min)};
  }
};

// The place of a block's dword in the order of its dot. Nibbles of one word follow each other where they share a scale.
template <DType Type>
constexpr int dword_order(int g) {
  return has_blocks(Type) && ProductUnit<Type>::halves == 1 ? g % 4 * 2 + g / 4 : g;
}

template <DType Type>
struct Product {
  using Unit = ProductUnit<Type>;

  gpu::Ptr<const float> x;
  int64_t x_token, x_element;  // strides
  bool x_whole;                // four neighbours are 16 aligned bytes
  gpu::Ptr<const typename Unit::Word> w;
  int64_t w_stride;  // of a row; of a group of eight rows in words
  bool w_whole;      // units are 16 aligned bytes
  int64_t tokens, rows, k;
  int chain_bits;  // 2^chain_bits chains

  bool has_bias, has_residual;
  gpu::Ptr<const float> bias, residual;
  int64_t bias_stride, residual_token, residual_row;
  gpu::Ptr<float> y;
  int64_t y_token, y_row;

  GPU_FN int chains() const { return 1 << chain_bits; }
  GPU_FN int64_t units() const { return (k + Unit::size - 1) / Unit::size; }

  // Elements e ... e + 3 of a token, zeros past its end.
  GPU_FN Four activations(int64_t token, int64_t e) const {
    Four four = {{0, 0, 0, 0}};
    if (token >= tokens || e >= k) return four;
    const auto from = x + token * x_token;
    if (x_whole) {
      const gpu::U4 v = gpu::load16(from + e);
      return {{gpu::from_bits(v.x), gpu::from_bits(v.y), gpu::from_bits(v.z), gpu::from_bits(v.w)}};
    }
    GPU_UNROLL
    for (int i = 0; i < 4; ++i)
      if (e + i < k) four.x[i] = from[(e + i) * x_element];
    return four;
  }

  GPU_FN void finish(int64_t token, int64_t row, float sum) const {
    if (token >= tokens || row >= rows) return;
    if (has_bias) sum = gpu::add(sum, bias[row * bias_stride]);
    if (has_residual) sum = gpu::add(sum, residual[token * residual_token + row * residual_row]);
    y[token * y_token + row * y_row] = sum;
  }
};

// A matrix of many rows keeps a device busy with few chains, and a unit is worth a thread.
inline int chain_bits_of(int64_t rows, int64_t k) {
  const int most = rows <= 8192 ? 6 : rows <= 16384 ? 5 : 4;
  return std::clamp(static_cast<int>(std::bit_width(static_cast<uint64_t>(k / 32))) - 1, 0, most);
}

inline bool aligned(const std::byte* data, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(bytes) == 0;
}

// Where the weights of p.rows by p.k lie: a matrix, or the first of a stack.
template <DType Type>
void set_weights(Product<Type>& p, const View& w) {
  using Unit = ProductUnit<Type>;
  p.w = pointer<const typename Unit::Word>(w);
  p.w_stride = has_blocks(Type) ? packed_shape(Type, p.rows, p.k).group_bytes / 4 : p.k;
  p.w_whole = !has_blocks(Type) && p.k % Unit::size == 0 && aligned(w.data, 16);
}

// The sum of a unit's x (or of the half's, where the type has halves), for types with a minimum: eight neighbouring
// lanes hold the unit's dwords.
template <DType Type>
GPU_FN float unit_sum(const Four& four) {
  float sum = gpu::add(gpu::add(four.x[0], four.x[1]), gpu::add(four.x[2], four.x[3]));
  for (int mask = 1; mask < 8 / ProductUnit<Type>::halves; mask *= 2) sum = gpu::add(sum, gpu::shfl_xor(sum, mask));
  return sum;
}

GPU_FN void store_four(gpu::Shared<float> to, const Four& v) {
  gpu::store16(to, {gpu::to_bits(v.x[0]), gpu::to_bits(v.x[1]), gpu::to_bits(v.x[2]), gpu::to_bits(v.x[3])});
}
GPU_FN Four load_four(gpu::Shared<float> from) {
  const gpu::U4 v = gpu::load16(from);
  return {{gpu::from_bits(v.x), gpu::from_bits(v.y), gpu::from_bits(v.z), gpu::from_bits(v.w)}};
}

}  // namespace consonant::GPU_BUILD
