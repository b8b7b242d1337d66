// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights in shared memory as operands of the tensor cores. Of block types these are whole numbers: the words of rows8
// (tensor/packed_layout.hpp) are already where a lane wants them. With g = lane / 4 and t = lane % 4, it reads words t
// and t + 4 of row g of a block of 32, columns 4 t ... 4 t + 3 and 16 + 4 t ... 16 + 4 t + 3: its share of a product of
// 32 columns of signed bytes. Activations are whole numbers as well (mma_activations.hpp), so that nothing is rounded
// until a super-block's sums are multiplied with d, and dmin. Plain types take the columns 8 t ... 8 t + 7 in their
// order, as two products of 16 columns.
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

// The low nibbles of four bytes side by side; the upper ones must be zero.
GPU_FN uint32_t packed_nibbles(uint32_t q) {
  const uint32_t pairs = q | q >> 4;
  return (pairs & 0xFF) | (pairs >> 8 & 0xFF00);
}

// Four bytes below 128, less a number each.
template <int Less>
GPU_FN uint32_t bytes_less(uint32_t q) {
  if constexpr (Less == 0) return q;
  return ((q | 0x80808080u) - 0x01010101u * Less) ^ 0x80808080u;
}

// Quants of a row in a block as signed bytes: words t and t + 4, from the row's dwords of the planes that have them. Of
// four bits, and of a single one, the first dword holds both words.
template <DType Type>
GPU_FN void quant_bytes(const uint32_t (&base)[2], const uint32_t (&upper)[2], int t, uint32_t& low, uint32_t& high) {
  constexpr BlockLayout layout = block_layout(Type);
  if constexpr (layout.base_bits == 8) {
    low = base[0], high = base[1];
  } else if constexpr (layout.base_bits == 4) {
    low = base[0] & 0x0F0F0F0Fu, high = base[0] >> 4 & 0x0F0F0F0Fu;
  } else {
    low = base[0] >> 2 * t & 0x03030303u, high = base[1] >> 2 * t & 0x03030303u;
  }
  if constexpr (layout.upper_bits == 1) {
    const uint32_t word = upper[0] >> t;
    low |= (word & 0x01010101u) << layout.base_bits, high |= (word >> 4 & 0x01010101u) << layout.base_bits;
  } else if constexpr (layout.upper_bits == 2) {
    low |= (upper[0] >> 2 * t & 0x03030303u) << layout.base_bits;
    high |= (upper[1] >> 2 * t & 0x03030303u) << layout.base_bits;
  }
  if constexpr (layout.quant == Quant::iq4 || layout.quant == Quant::fp4) {  // levels are 128 more
    low = levels<layout.quant>(packed_nibbles(low)) ^ 0x80808080u;
    high = levels<layout.quant>(packed_nibbles(high)) ^ 0x80808080u;
  }
  if constexpr (layout.quant == Quant::offset)
    low = bytes_less<layout.offset>(low), high = bytes_less<layout.offset>(high);
}

// Where a plane of so many bits has the dwords of words t and t + 4 of row 0, in dwords from a block's begin, and how
// many there are of them.
constexpr int dwords_of(int bits) { return bits == 8 || bits == 2 ? 2 : bits == 0 ? 0 : 1; }
GPU_FN int dword_of(int bits, int t, int i) { return bits == 8 ? 8 * t + 32 * i : bits == 4 ? 8 * t : 8 * i; }

// The lane's quants of row g. `base` and `upper` are the block's.
template <DType Type>
GPU_FN void quant_bytes(gpu::Shared<const uint32_t> base, gpu::Shared<const uint32_t> upper, int g, int t,
                        uint32_t& low, uint32_t& high) {
  constexpr BlockLayout layout = block_layout(Type);
  uint32_t from[2] = {}, above[2] = {};
  GPU_UNROLL
  for (int i = 0; i < dwords_of(layout.base_bits); ++i) from[i] = base[dword_of(layout.base_bits, t, i) + g];
  GPU_UNROLL
  for (int i = 0; i < dwords_of(layout.upper_bits); ++i) above[i] = upper[dword_of(layout.upper_bits, t, i) + g];
  quant_bytes<Type>(from, above, t, low, high);
}

// Of a super-block's record, the whole scale of half h of block b, row r.
template <DType Type>
GPU_FN int whole_scale(gpu::Shared<const uint8_t> record, int b, int h, int r) {
  constexpr Scales kind = block_layout(Type).scales;
  const int i = 2 * b + h;
  if constexpr (kind == Scales::k32) return static_cast<int8_t>(record[16 + 8 * b + r]);
  if constexpr (kind == Scales::k32_min) return record[32 + 16 * b + r];
  if constexpr (kind == Scales::k16) return static_cast<int8_t>(record[16 + 8 * i + r]);
  if constexpr (kind == Scales::k16_six)
    return ((record[16 + 8 * (i % 8) + r] >> i / 8 * 4 & 15) | (record[80 + 8 * (i % 4) + r] >> i / 4 * 2 & 3) << 4) -
           32;
  return record[32 + 8 * i + r] & 15;
}
// And its minimum; i: block or half block.
template <DType Type>
GPU_FN int whole_minimum(gpu::Shared<const uint8_t> record, int i, int r) {
  if constexpr (block_layout(Type).scales == Scales::k32_min) return record[40 + 16 * i + r];
  return record[32 + 8 * i + r] >> 4;
}

// What multiplies the sum of row r's products: of a super-block, or of one block.
template <DType Type>
GPU_FN float factor(gpu::Shared<const uint8_t> record, int r) {
  if constexpr (block_layout(Type).scales == Scales::e8m0)
    return e8m0_half_of(record[r]);
  else
    return gpu::from_half(gpu::cast<const uint16_t>(record)[r]);
}
// What multiplies the sum of minima times activations, or of a block's activations.
template <DType Type>
GPU_FN float minimum_factor(gpu::Shared<const uint8_t> record, int r) {
  const float m = gpu::from_half(gpu::cast<const uint16_t>(record)[8 + r]);
  return block_layout(Type).super() ? -m : m;
}

}  // namespace consonant::GPU_BUILD::mma
