// SPDX-License-Identifier: Apache-2.0
#pragma once

// Activations as operands of the tensor cores. A token's row is cut into units of 256 columns, and each becomes a
// record and a number that its products are multiplied with.
//
// For block types the unit's largest magnitude becomes 32512, and all are rounded to whole numbers x, once; then
// x = 256 high + low, two signed bytes. Sums of products are exact until the unit ends. A record is
//
//   [4 pairs of blocks][high, low][4 t] sixteen bytes: what lane t wants of both blocks, in the order of
//   mma_weights.hpp 64 bytes        the sums of x over the 8 blocks, or the 16 halves of blocks, which minima multiply.
//   They also keep
//                   the tokens 64 bytes apart in the banks.
//
// For plain types the unit is multiplied with the power of two that brings its largest magnitude to 2^9 ... 2^10, so
// that halves neither overflow nor lose small values to subnormals (down to 2^-24 of the largest), and rounded once:
//
//   [8 blocks][4 t] sixteen bytes: what lane t wants of a block, in the order of mma_weights.hpp; for bfloats, whose 8
//                   bits are too few, two such parts that add up to 16 bits
//   64 bytes        nothing
#include "ops/gpu_rows.hpp"
#include "ops/linear/mma_weights.hpp"

namespace consonant::GPU_BUILD::mma {

template <DType Type>
constexpr int parts = Type == DType::bf16 ? 2 : 1;
constexpr int part_bytes = unit_columns * 2;
template <DType Type>
constexpr int record_bytes = parts<Type>* part_bytes + 64;

// Four neighbouring activations of a token, zeros from the end of the row on; a policy of what multiplies the weights.
struct PlainInputs {
  Rows<const float> x;
  bool aligned;  // rows start at multiples of 16 bytes

  GPU_FN Four load(int token, int column) const {
    return load_four(x.row(token), column, static_cast<int>(x.cols), aligned);
  }
};

struct Powers {
  float scale, undo;  // powers of two, each the other's reciprocal
};
GPU_FN Powers powers(uint32_t max_bits) {
  uint32_t e = max_bits >> 23;
  if (e < 27) e = 27;
  return {gpu::from_bits((263 - e) << 23), gpu::from_bits((e - 9) << 23)};
}

GPU_FN uint32_t magnitude_bits(float x) { return gpu::to_bits(x) & 0x7FFFFFFFu; }
GPU_FN uint32_t most_bits(uint32_t most, const Four& four) {
  GPU_UNROLL
  for (int i = 0; i < 4; ++i) {
    const uint32_t x = magnitude_bits(four.x[i]);
    most = x > most ? x : most;
  }
  return most;
}

// Where in a unit the lane's first or second four columns are.
template <DType Type>
GPU_FN int lane_column(int unit, int i) {
  const int b = gpu::lane() / 4, t = gpu::lane() % 4;
  return unit * unit_columns + (has_blocks(Type) ? 32 * b + 4 * t + 16 * i : 8 * gpu::lane() + 4 * i);
}

// A warp makes the record of a unit, of which each lane has its two fours; `record` is in shared or in global memory.
// What its products are multiplied with is for every lane; not a number, if an activation isn't finite.
template <DType Type, class Bytes>
GPU_FN float make_byte_record(const Four (&halves)[2], Bytes record) {
  constexpr uint32_t least = 0x0D800000u;  // 2^-100: whose reciprocal is finite
  const int b = gpu::lane() / 4, t = gpu::lane() % 4;
  uint32_t most = warp_max_bits(most_bits(most_bits(0, halves[0]), halves[1]));
  const bool finite = most < 0x7F800000u;
  most = most > least ? most : least;
  const float scale = finite ? 32512.0f / gpu::from_bits(most) : 0;
  uint32_t high[2], low[2];
  int32_t sums[2];
  GPU_UNROLL
  for (int h = 0; h < 2; ++h) {
    uint32_t x[4], up[4];
    sums[h] = 0;
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int32_t whole = finite ? static_cast<int32_t>(gpu::round_even(halves[h].x[i] * scale)) : 0;
      sums[h] += whole;
      x[i] = static_cast<uint32_t>(whole), up[i] = x[i] + 128;
    }
    low[h] = gpu::byte_perm(gpu::byte_perm(x[0], x[1], 0x0040), gpu::byte_perm(x[2], x[3], 0x0040), 0x5410);
    high[h] = gpu::byte_perm(gpu::byte_perm(up[0], up[1], 0x0051), gpu::byte_perm(up[2], up[3], 0x0051), 0x5410);
  }
  const auto to = gpu::cast<uint32_t>(record + (b / 2 * 128 + 16 * t + b % 2 * 8));
  to[0] = high[0], to[1] = high[1], to[16] = low[0], to[17] = low[1];
  if constexpr (block_layout(Type).minimum()) {
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      sums[h] += gpu::shfl_xor(sums[h], 1);
      sums[h] += gpu::shfl_xor(sums[h], 2);
    }
    const auto out = gpu::cast<int32_t>(record + part_bytes);
    if constexpr (block_layout(Type).halves()) {
      if (t < 2) out[2 * b + t] = sums[t];
    } else {
      if (t == 0) out[b] = sums[0] + sums[1];
    }
  }
  return finite ? gpu::from_bits(most) / 32512.0f : gpu::from_bits(0x7FC00000u);
}

template <DType Type, class Bytes>
GPU_FN float make_plain_record(const Four& first, const Four& second, Bytes record) {
  const Powers power = powers(warp_max_bits(most_bits(most_bits(0, first), second)));
  float x[8];
  GPU_UNROLL
  for (int i = 0; i < 4; ++i) x[i] = first.x[i] * power.scale, x[4 + i] = second.x[i] * power.scale;
  GPU_UNROLL
  for (int part = 0; part < parts<Type>; ++part) {
    uint32_t words[4];
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      float &low = x[2 * i], &high = x[2 * i + 1];
      words[i] = Type == DType::bf16 ? bfloat2(low, high) : half2(low, high);
      if constexpr (parts<Type> == 2) {
        low -= gpu::bfloat_from(static_cast<uint16_t>(words[i]));
        high -= gpu::bfloat_from(static_cast<uint16_t>(words[i] >> 16));
      }
    }
    gpu::store16(record + part * part_bytes + 16 * gpu::lane(), gpu::U4{words[0], words[1], words[2], words[3]});
  }
  return power.undo;
}

template <DType Type, class Bytes>
GPU_FN float make_record(const Four (&x)[2], Bytes record) {
  if constexpr (has_blocks(Type))
    return make_byte_record<Type>(x, record);
  else
    return make_plain_record<Type>(x[0], x[1], record);
}

}  // namespace consonant::GPU_BUILD::mma
