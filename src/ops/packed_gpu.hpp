// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as they lie on an accelerator, decoded by a kernel: block types in Layout::rows8 (tensor/packed_layout.hpp),
// the others in Layout::plain. Values have the bits that decode_packed_row gives. The type is a template's argument, so
// that what isn't its own vanishes.
#include "device/gpu.hpp"
#include "tensor/dtype.hpp"
#include "tensor/packed_layout.hpp"

namespace consonant::GPU_BUILD {

constexpr bool has_blocks(DType type) { return block_layout(type).base_bits != 0; }

// ---- plain types

template <DType Type>
struct PlainElement {
  using Stored = uint16_t;
};
template <>
struct PlainElement<DType::f32> {
  using Stored = float;
};
// What a matrix of plain type consists of: float, or the bits of a half or a bfloat.
template <DType Type>
using Stored = typename PlainElement<Type>::Stored;

template <DType Type>
GPU_FN float plain_value(Stored<Type> stored) {
  if constexpr (Type == DType::f16)
    return gpu::from_half(stored);
  else if constexpr (Type == DType::bf16)
    return gpu::bfloat_from(stored);
  else
    return stored;
}

// ---- block types

struct ScaleMin {
  float scale, min;
};
struct Four {
  float x[4];
};

// A whole number below 2^23 without a conversion, which is slow: the last bits of 2^23 + q.
GPU_FN float small_whole(uint32_t q, int offset) {
  return gpu::from_bits(0x4B000000u | q) - static_cast<float>(0x800000 + offset);
}

GPU_FN uint32_t byte_of(uint32_t word, int i) { return word >> 8 * i & 255; }

// Half of 2^(e - 127), for levels that are doubled.
GPU_FN float e8m0_half_of(uint32_t e) {
  return gpu::from_bits(e == 255 ? 0x7FC00000u : e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

// Of each byte (0 ... 15) of `q` the level in a table of 16 signed bytes.
template <Quant Table>
GPU_FN uint32_t levels(uint32_t q) {
  static_assert(Table == Quant::iq4 || Table == Quant::fp4);
  // Four levels a word, the first in its lowest byte: iq4_values and fp4_doubled of tensor/blocks.hpp.
  constexpr uint32_t a = Table == Quant::iq4 ? 0xBFAD9881u : 0x03020100u,
                     b = Table == Quant::iq4 ? 0xF6EADDCFu : 0x0C080604u;
  constexpr uint32_t c = Table == Quant::iq4 ? 0x26190D01u : 0xFDFEFF00u,
                     d = Table == Quant::iq4 ? 0x71594535u : 0xF4F8FAFCu;
  // Selectors in neighbouring nibbles, where byte_perm wants them; bit 3 chooses between the halves of the table.
  const uint32_t pairs = q | q >> 4, selector = (pairs & 0xFF) | (pairs >> 8 & 0xFF00);
  const uint32_t low = gpu::byte_perm(a, b, selector & 0x7777), high = gpu::byte_perm(c, d, selector & 0x7777);
  const uint32_t upper = (q >> 3 & 0x01010101u) * 255;
  return (low & ~upper) | (high & upper);
}

// Four quants, one a byte, as numbers before their scale.
template <DType Type>
GPU_FN Four numbers(uint32_t q) {
  constexpr BlockLayout layout = block_layout(Type);
  int offset = 128;
  if constexpr (layout.quant == Quant::offset) {
    offset = layout.offset;
  } else {
    if constexpr (layout.quant != Quant::signed_byte) q = levels<layout.quant>(q);
    q ^= 0x80808080u;  // signed bytes, 128 more
  }
  Four four;
  GPU_UNROLL
  for (int i = 0; i < 4; ++i) four.x[i] = small_whole(byte_of(q, i), offset);
  return four;
}

// A group of eight rows [8, k]. Block b is elements 32 b ... 32 b + 31 of a row, its dword g elements 4 g ... 4 g + 3
// of the block, r the row.
template <DType Type>
struct PackedGroup {
  static constexpr BlockLayout layout = block_layout(Type);
  static_assert(layout.base_bits != 0);
  // In words of four bytes.
  static constexpr int base_words = layout.base_bits * 8, upper_words = layout.upper_bits * 8;
  static constexpr int record_words = static_cast<int>(layout.record_bytes() / 4);
  static constexpr bool super = layout.super(), halves = layout.halves(), minimum = layout.minimum();

  gpu::Ptr<const uint32_t> words;  // of the group
  int64_t blocks;                  // of a row: k / 32

  // The quants of a dword, one a byte.
  GPU_FN uint32_t quants(int64_t b, int g, int r) const {
    uint32_t q = plane<layout.base_bits>(b * base_words, g, r);
    if constexpr (layout.upper_bits != 0)
      q |= plane<layout.upper_bits>(blocks * base_words + b * upper_words, g, r) << layout.base_bits;
    return q;
  }

  // An element is scale * number, rounded, + min. h: the half of the block, g / 4; types without `halves` have equal
  // ones.
  GPU_FN ScaleMin scale_min(int64_t b, int h, int r) const {
    const int64_t record = blocks * (base_words + upper_words) + (super ? b / 8 : b) * record_words;
    const int j = static_cast<int>(b % 8), i = 2 * j + h;
    if constexpr (layout.scales == Scales::e8m0) {
      return {e8m0_half_of(byte(record, 0, r)), 0};
    } else {
      const float d = half(record, 0, r);
      if constexpr (layout.scales == Scales::half) {
        return {d, 0};
      } else if constexpr (layout.scales == Scales::half_min) {
        return {d, half(record, 16, r)};
      } else if constexpr (layout.scales == Scales::k32) {
        return {gpu::mul(d, small_whole(byte(record, 16 + 8 * j, r) ^ 128, 128)), 0};
      } else if constexpr (layout.scales == Scales::k32_min) {
        return {gpu::mul(d, small_whole(byte(record, 32 + 16 * j, r), 0)),
                -gpu::mul(half(record, 16, r), small_whole(byte(record, 40 + 16 * j, r), 0))};
      } else if constexpr (layout.scales == Scales::k16) {
        return {gpu::mul(d, small_whole(byte(record, 16 + 8 * i, r) ^ 128, 128)), 0};
      } else if constexpr (layout.scales == Scales::k16_six) {
        const uint32_t low = byte(record, 16 + 8 * (i % 8), r) >> i / 8 * 4 & 15;
        const uint32_t high = byte(record, 80 + 8 * (i % 4), r) >> i / 4 * 2 & 3;
        return {gpu::mul(d, small_whole(low | high << 4, 32)), 0};
      } else {
        const uint32_t both = byte(record, 32 + 8 * i, r);
        return {gpu::mul(d, small_whole(both & 15, 0)), -gpu::mul(half(record, 16, r), small_whole(both >> 4, 0))};
      }
    }
  }

  // The elements of a dword, given its half's scale.
  GPU_FN Four decode(int64_t b, int g, int r, const ScaleMin& s) const {
    Four four = numbers<Type>(quants(b, g, r));
    GPU_UNROLL
    for (float& x : four.x) {
      x = gpu::mul(s.scale, x);
      if constexpr (minimum) x = gpu::add(x, s.min);
    }
    return four;
  }
  GPU_FN Four decode(int64_t b, int g, int r) const { return decode(b, g, r, scale_min(b, g / 4, r)); }

 private:
  template <int Bits>
  GPU_FN uint32_t plane(int64_t at, int g, int r) const {
    constexpr int held = 8 / Bits;  // dwords of quants in a word
    const int i = Bits == 4 ? g % 4 : g / held, j = Bits == 4 ? g / 4 : g % held;
    const uint32_t word = words[at + i * 8 + r];
    if constexpr (Bits == 8)
      return word;
    else
      return word >> Bits * j & 0x01010101u * ((1u << Bits) - 1);
  }
  // Of a record: row r's element of eight neighbours that start `bytes` behind word `at`.
  GPU_FN float half(int64_t at, int bytes, int r) const {
    return gpu::from_half(static_cast<uint16_t>(words[at + bytes / 4 + r / 2] >> r % 2 * 16));
  }
  GPU_FN uint32_t byte(int64_t at, int bytes, int r) const { return byte_of(words[at + bytes / 4 + r / 4], r % 4); }
};

// Where a matrix in rows8 has its groups.
template <DType Type>
struct PackedMatrix {
  gpu::Ptr<const uint32_t> words;
  int64_t group_words, blocks;

  GPU_FN PackedGroup<Type> group(int64_t g) const { return {words + g * group_words, blocks}; }
  // Element by element, for a kernel that takes single rows: element 4 g + i of block b is decode(b, g, row % 8).x[i]
  // of group(row / 8).
};

}  // namespace consonant::GPU_BUILD
