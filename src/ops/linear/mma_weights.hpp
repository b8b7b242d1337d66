// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights in shared memory as operands of the tensor cores. The words of rows8 (tensor/packed_layout.hpp) are already
// where a lane wants them: with g = lane / 4 and t = lane % 4, it reads words t and t + 4 of row g of a block of 32,
// columns 4 t ... 4 t + 3 and 16 + 4 t ... 16 + 4 t + 3. Those are its share of two products of 16 columns; in each,
// its k of 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 stand for the columns 4 t, 4 t + 2, 4 t + 1 and 4 t + 3 (+ 16), an order
// that the activations share (mma_activations.hpp). Plain types take the columns 8 t ... 8 t + 7 in their order.
//
// Weights aren't rounded. What goes through the tensor cores are the quants as whole numbers, up to 128, and in
// super-blocks quant times the whole scale of its sub-block, up to 4096: halves hold all of them but the odd ones above
// 2048 (in q6_k and iq4_xs alone; off by 1). d, and dmin, multiply sums of products in float32.
#include "ops/linear/mma.hpp"
#include "ops/packed_gpu.hpp"

namespace consonant::GPU_BUILD::mma {

constexpr int unit_columns = 256, unit_blocks = 8;  // what is summed before a scale of float32: a super-block

// What a row and group of a unit is in shared memory, all planes one after another.
template <DType Type>
struct UnitLayout {
  static constexpr BlockLayout layout = block_layout(Type);
  static constexpr int upper_at = static_cast<int>(unit_blocks * layout.base_bytes());
  static constexpr int records_at = upper_at + static_cast<int>(unit_blocks * layout.upper_bytes());
  static constexpr int group_bytes =
      records_at + static_cast<int>((layout.super() ? 1 : unit_blocks) * layout.record_bytes());
  static constexpr int row_bytes = unit_columns * 2 + 64;  // plain types: rows 64 bytes apart in the banks
  static constexpr int bytes = layout.base_bits != 0 ? 2 * group_bytes : 16 * row_bytes;  // of 16 rows
};

// Bytes `first` and `first` + 2 of a word, as halves 1024 more.
GPU_FN uint32_t halves_of_bytes(uint32_t word, int first) { return (word >> 8 * first & 0x00FF00FFu) | 0x64006400u; }

// The low nibbles of four bytes side by side; the upper ones must be zero.
GPU_FN uint32_t packed_nibbles(uint32_t q) {
  const uint32_t pairs = q | q >> 4;
  return (pairs & 0xFF) | (pairs >> 8 & 0xFF00);
}

// The lane's quants of row g in a block, one a byte, plus the offset below: words t and t + 4. `base` and `upper` are
// the block's.
template <DType Type>
GPU_FN void quant_bytes(gpu::Shared<const uint32_t> base, gpu::Shared<const uint32_t> upper, int g, int t,
                        uint32_t& low, uint32_t& high) {
  constexpr BlockLayout layout = block_layout(Type);
  if constexpr (layout.base_bits == 8) {
    low = base[8 * t + g], high = base[8 * t + 32 + g];
  } else if constexpr (layout.base_bits == 4) {
    const uint32_t word = base[8 * t + g];
    low = word & 0x0F0F0F0Fu, high = word >> 4 & 0x0F0F0F0Fu;
  } else {
    low = base[g] >> 2 * t & 0x03030303u, high = base[8 + g] >> 2 * t & 0x03030303u;
  }
  if constexpr (layout.upper_bits == 1) {
    const uint32_t word = upper[g] >> t;
    low |= (word & 0x01010101u) << layout.base_bits, high |= (word >> 4 & 0x01010101u) << layout.base_bits;
  } else if constexpr (layout.upper_bits == 2) {
    low |= (upper[g] >> 2 * t & 0x03030303u) << layout.base_bits;
    high |= (upper[8 + g] >> 2 * t & 0x03030303u) << layout.base_bits;
  }
  if constexpr (layout.quant == Quant::iq4 || layout.quant == Quant::fp4) {
    low = levels<layout.quant>(packed_nibbles(low)), high = levels<layout.quant>(packed_nibbles(high));
  }
  if constexpr (layout.quant == Quant::signed_byte) low ^= 0x80808080u, high ^= 0x80808080u;  // levels are biased
}

template <DType Type>
constexpr int quant_offset = block_layout(Type).quant == Quant::offset ? block_layout(Type).offset : 128;

// Of a super-block's record, the whole scale of half h of block b, row r, as both halves of a word.
template <DType Type>
GPU_FN uint32_t whole_scale(gpu::Shared<const uint8_t> record, int b, int h, int r) {
  constexpr Scales kind = block_layout(Type).scales;
  const int i = 2 * b + h;
  uint32_t s = 0;
  int offset = 0;
  if constexpr (kind == Scales::k32) s = record[16 + 8 * b + r] ^ 128, offset = 128;
  if constexpr (kind == Scales::k32_min) s = record[32 + 16 * b + r];
  if constexpr (kind == Scales::k16) s = record[16 + 8 * i + r] ^ 128, offset = 128;
  if constexpr (kind == Scales::k16_six) {
    s = (record[16 + 8 * (i % 8) + r] >> i / 8 * 4 & 15) | (record[80 + 8 * (i % 4) + r] >> i / 4 * 2 & 3) << 4;
    offset = 32;
  }
  if constexpr (kind == Scales::k16_min) s = record[32 + 8 * i + r] & 15;
  return half2_sub(gpu::byte_perm(s, 0x64, 0x4040), (0x6400u + offset) * 0x10001u);
}

// Row g's operands for the two products of a block: words [0] and [1] for the first, [2] and [3] for the second.
template <DType Type>
GPU_FN void row_operands(gpu::Shared<const uint32_t> base, gpu::Shared<const uint32_t> upper,
                         gpu::Shared<const uint8_t> record, int b, int g, int t, uint32_t (&to)[4]) {
  constexpr BlockLayout layout = block_layout(Type);
  constexpr uint32_t bias = (0x6400u + quant_offset<Type>)*0x10001u;
  uint32_t low, high;
  quant_bytes<Type>(base, upper, g, t, low, high);
  to[0] = halves_of_bytes(low, 0), to[1] = halves_of_bytes(low, 1);
  to[2] = halves_of_bytes(high, 0), to[3] = halves_of_bytes(high, 1);
  if constexpr (!layout.super()) {
    GPU_UNROLL
    for (uint32_t& x : to) x = half2_sub(x, bias);
  } else {
    uint32_t s[2];
    s[0] = whole_scale<Type>(record, b, 0, g);
    s[1] = layout.halves() ? whole_scale<Type>(record, b, 1, g) : s[0];
    if constexpr (layout.quant == Quant::offset && layout.offset == 0) {
      // Scales are below 64 here: -1024 s is a half, and (1024 + q) s - 1024 s is rounded once, if at all.
      const uint32_t less[2] = {half2_mul(s[0], 0xE400E400u), half2_mul(s[1], 0xE400E400u)};
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) to[i] = half2_fma(to[i], s[i / 2], less[i / 2]);
    } else {
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) to[i] = half2_mul(half2_sub(to[i], bias), s[i / 2]);
    }
  }
}

// What multiplies the sum of row r's products: of a super-block, or of one block.
template <DType Type>
GPU_FN float factor(gpu::Shared<const uint8_t> record, int r) {
  if constexpr (block_layout(Type).scales == Scales::e8m0)
    return e8m0_half_of(record[r]);
  else
    return gpu::from_half(gpu::cast<const uint16_t>(record)[r]);
}
// What multiplies the sum of minima times activations, and is added.
template <DType Type>
GPU_FN float minimum_factor(gpu::Shared<const uint8_t> record, int r) {
  if constexpr (block_layout(Type).super())
    return -gpu::from_half(gpu::cast<const uint16_t>(record)[8 + r]);
  else
    return 1;
}

// The minima of row r as an operand: those of blocks 2 t and 2 t + 1, or of halves 2 t + 8 p and 2 t + 8 p + 1. Whole
// numbers in super-blocks, halves as they are elsewhere; zero from block `here` on.
template <DType Type>
GPU_FN uint32_t minima(gpu::Shared<const uint8_t> records, int t, int p, int r, int here) {
  constexpr Scales kind = block_layout(Type).scales;
  if constexpr (kind == Scales::half_min) {
    const auto halves = gpu::cast<const uint16_t>(records);
    const uint32_t first = 2 * t < here ? halves[32 * t + 8 + r] : 0;
    const uint32_t second = 2 * t + 1 < here ? halves[32 * t + 24 + r] : 0;
    return first | second << 16;
  } else {
    uint32_t first = 0, second = 0;
    if constexpr (kind == Scales::k32_min) first = records[40 + 32 * t + r], second = records[56 + 32 * t + r];
    if constexpr (kind == Scales::k16_min) {
      first = records[32 + 16 * t + 64 * p + r] >> 4, second = records[40 + 16 * t + 64 * p + r] >> 4;
    }
    return half2_sub(first | second << 16 | 0x64006400u, 0x64006400u);
  }
}

}  // namespace consonant::GPU_BUILD::mma
