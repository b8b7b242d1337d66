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

// From a record's d and dmin (or m), and the bytes that belong to the half: six-bit ones put together already.
template <DType Type>
GPU_FN ScaleMin scale_of(float d, float m, uint32_t s, uint32_t t) {
  constexpr Scales scales = block_layout(Type).scales;
  if constexpr (scales == Scales::e8m0)
    return {e8m0_half_of(s), 0};
  else if constexpr (scales == Scales::half)
    return {d, 0};
  else if constexpr (scales == Scales::half_min)
    return {d, m};
  else if constexpr (scales == Scales::k32 || scales == Scales::k16)
    return {gpu::mul(d, small_whole(s ^ 128, 128)), 0};
  else if constexpr (scales == Scales::k32_min)
    return {gpu::mul(d, small_whole(s, 0)), -gpu::mul(m, small_whole(t, 0))};
  else if constexpr (scales == Scales::k16_six)
    return {gpu::mul(d, small_whole(s, 32)), 0};
  else
    return {gpu::mul(d, small_whole(s & 15, 0)), -gpu::mul(m, small_whole(s >> 4, 0))};
}

// Where dword g of a block lies in a plane: the word of a row's, and the bits in it.
template <int Bits>
constexpr int plane_word(int g) {
  return Bits == 4 ? g % 4 : g / (8 / Bits);
}
template <int Bits>
GPU_FN uint32_t plane_bits(uint32_t word, int g) {
  if constexpr (Bits == 8) return word;
  return word >> Bits * (Bits == 4 ? g / 4 : g % (8 / Bits)) & 0x01010101u * ((1u << Bits) - 1);
}

// Where a record holds its bytes, in words: of eight rows, for block j of 32 in a super-block and its half h.
template <DType Type>
struct RecordAt {
  static constexpr Scales scales = block_layout(Type).scales;
  static constexpr int m = 4;
  static constexpr int s(int j, int h) {
    switch (scales) {
      case Scales::k32:
        return 4 + 2 * j;
      case Scales::k32_min:
        return 8 + 4 * j;
      case Scales::k16:
        return 4 + 2 * (2 * j + h);
      case Scales::k16_six:
        return 4 + 2 * ((2 * j + h) % 8);
      case Scales::k16_min:
        return 8 + 2 * (2 * j + h);
      default:
        return 0;
    }
  }
  static constexpr bool has_d = scales != Scales::e8m0, has_m = block_layout(Type).minimum();
  static constexpr bool has_s = scales != Scales::half && scales != Scales::half_min;
  static constexpr bool has_t = scales == Scales::k32_min || scales == Scales::k16_six;
  static constexpr int t(int j, int h) { return scales == Scales::k32_min ? 10 + 4 * j : 20 + 2 * ((2 * j + h) % 4); }
};

// The bytes s of up to four rows, given the words of a record that hold them.
template <DType Type>
GPU_FN uint32_t scale_bytes(uint32_t s, uint32_t t, int j, int h) {
  if constexpr (block_layout(Type).scales != Scales::k16_six) return s;
  const int i = 2 * j + h;
  return (s >> i / 8 * 4 & 0x0F0F0F0Fu) | (t >> i / 4 * 2 & 0x03030303u) << 4;
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
  using At = RecordAt<Type>;

  gpu::Ptr<const uint32_t> words;  // of the group
  int64_t blocks;                  // of a row: k / 32

  GPU_FN int64_t base_at(int64_t b) const { return b * base_words; }
  GPU_FN int64_t upper_at(int64_t b) const { return blocks * base_words + b * upper_words; }
  GPU_FN int64_t record_at(int64_t b) const {
    return blocks * (base_words + upper_words) + (super ? b / 8 : b) * record_words;
  }

  // The quants of a dword, one a byte.
  GPU_FN uint32_t quants(int64_t b, int g, int r) const {
    uint32_t q = plane_bits<layout.base_bits>(words[base_at(b) + plane_word<layout.base_bits>(g) * 8 + r], g);
    if constexpr (layout.upper_bits != 0) {
      const uint32_t word = words[upper_at(b) + plane_word<layout.upper_bits>(g) * 8 + r];
      q |= plane_bits<layout.upper_bits>(word, g) << layout.base_bits;
    }
    return q;
  }

  // An element is scale * number, rounded, + min. h: the half of the block, g / 4; types without `halves` have equal
  // ones.
  GPU_FN ScaleMin scale_min(int64_t b, int h, int r) const {
    const int64_t record = record_at(b);
    const int j = static_cast<int>(b % 8);
    float d = 0, m = 0;
    uint32_t s = 0, t = 0;
    if constexpr (At::has_d) d = half(record + r / 2, r);
    if constexpr (At::has_m) m = half(record + At::m + r / 2, r);
    if constexpr (At::has_s) s = words[record + At::s(j, h) + r / 4];
    if constexpr (At::has_t) t = words[record + At::t(j, h) + r / 4];
    return scale_of<Type>(d, m, byte_of(scale_bytes<Type>(s, t, j, h), r % 4), byte_of(t, r % 4));
  }

  // The elements of a dword, given its half's scale.
  GPU_FN Four decode(int64_t b, int g, int r, const ScaleMin& s) const {
    Four four = numbers<Type>(quants(b, g, r));
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      four.x[i] = gpu::mul(s.scale, four.x[i]);
      if constexpr (minimum) four.x[i] = gpu::add(four.x[i], s.min);
    }
    return four;
  }
  GPU_FN Four decode(int64_t b, int g, int r) const { return decode(b, g, r, scale_min(b, g / 4, r)); }

 private:
  GPU_FN float half(int64_t at, int r) const { return gpu::from_half(static_cast<uint16_t>(words[at] >> r % 2 * 16)); }
};

// A block of four rows of a group, in registers: what a thread can load 16 bytes a time, and the scales' words hold.
template <DType Type>
struct PackedQuad {
  using Group = PackedGroup<Type>;
  using At = RecordAt<Type>;
  static constexpr BlockLayout layout = Group::layout;
  static constexpr int halves = Group::halves ? 2 : 1;

  gpu::U4 base[layout.base_bits], upper[layout.upper_bits ? layout.upper_bits : 1];
  uint32_t d[2], m[2], s[halves], t[halves];

  // Rows 4 quad ... 4 quad + 3.
  GPU_FN void load(const Group& group, int64_t b, int quad) {
    const auto words = group.words;
    GPU_UNROLL
    for (int i = 0; i < layout.base_bits; ++i) base[i] = gpu::load16(words + (group.base_at(b) + i * 8 + quad * 4));
    GPU_UNROLL
    for (int i = 0; i < layout.upper_bits; ++i) upper[i] = gpu::load16(words + (group.upper_at(b) + i * 8 + quad * 4));
    const int64_t record = group.record_at(b);
    const int j = static_cast<int>(b % 8);
    GPU_UNROLL
    for (int i = 0; i < 2; ++i) {
      if constexpr (At::has_d) d[i] = words[record + quad * 2 + i];
      if constexpr (At::has_m) m[i] = words[record + At::m + quad * 2 + i];
    }
    GPU_UNROLL
    for (int h = 0; h < halves; ++h) {
      if constexpr (At::has_s) s[h] = words[record + At::s(j, h) + quad];
      if constexpr (At::has_t) t[h] = words[record + At::t(j, h) + quad];
    }
  }

  // Of row `row` (0 ... 3); g, h and row are constants where this is fast.
  GPU_FN uint32_t quants(int g, int row) const {
    uint32_t q = plane_bits<layout.base_bits>(word_of(base[plane_word<layout.base_bits>(g)], row), g);
    if constexpr (layout.upper_bits != 0)
      q |= plane_bits<layout.upper_bits>(word_of(upper[plane_word<layout.upper_bits>(g)], row), g) << layout.base_bits;
    return q;
  }
  GPU_FN ScaleMin scale_min(int64_t b, int h, int row) const {
    float scale = 0, min = 0;
    uint32_t bytes = 0, more = 0;
    if constexpr (At::has_d) scale = gpu::from_half(static_cast<uint16_t>(d[row / 2] >> row % 2 * 16));
    if constexpr (At::has_m) min = gpu::from_half(static_cast<uint16_t>(m[row / 2] >> row % 2 * 16));
    if constexpr (At::has_t) more = t[h];
    if constexpr (At::has_s) bytes = scale_bytes<Type>(s[h], more, static_cast<int>(b % 8), h);
    return scale_of<Type>(scale, min, byte_of(bytes, row), byte_of(more, row));
  }

  GPU_FN static uint32_t word_of(const gpu::U4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
};

// A matrix in rows8. Element 4 g + i of block b of row r is group(r / 8).decode(b, g, r % 8).x[i].
template <DType Type>
struct PackedMatrix {
  gpu::Ptr<const uint32_t> words;
  int64_t group_words, blocks;

  GPU_FN PackedGroup<Type> group(int64_t g) const { return {words + g * group_words, blocks}; }
};

}  // namespace consonant::GPU_BUILD
