// SPDX-License-Identifier: Apache-2.0
#pragma once

// Weights as they lie on an accelerator, decoded by a kernel: block types in Layout::rows8 (tensor/packed_layout.hpp),
// the others in Layout::plain. Values have the bits that decode_packed_row gives. The type is a template's argument, so
// that what isn't its own vanishes.
#include "device/gpu.hpp"
#include "ops/gpu_four.hpp"
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

// Half of 2^(e - 127), for levels that are doubled.
GPU_FN float e8m0_half_of(uint32_t e) {
  return gpu::from_bits(e == 255 ? 0x7FC00000u : e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

// The 16 levels of a type's table, 128 more each, four a word and the first in its lowest byte: iq4_values and
// fp4_doubled of tensor/blocks.hpp.
template <Quant Table>
constexpr uint32_t level_word(int i) {
  static_assert(Table == Quant::iq4 || Table == Quant::fp4);
  constexpr uint32_t iq4[] = {0x3F2D1801, 0x766A5D4F, 0xA6998D81, 0xF1D9C5B5};
  constexpr uint32_t fp4[] = {0x83828180, 0x8C888684, 0x7D7E7F80, 0x74787A7C};
  return Table == Quant::iq4 ? iq4[i] : fp4[i];
}

// Of the four low nibbles of `q` the levels, one a byte; of the others' bits nothing matters.
template <Quant Table>
GPU_FN uint32_t levels(uint32_t q) {
  constexpr uint32_t a = level_word<Table>(0), b = level_word<Table>(1), c = level_word<Table>(2),
                     d = level_word<Table>(3);
  const uint32_t low = gpu::byte_perm(a, b, q & 0x7777), high = gpu::byte_perm(c, d, q & 0x7777);
  return gpu::byte_perm(low, high, (q >> 1 & 0x4444) | 0x3210);  // bit 3 of a nibble: the table's upper half
}

// Four quants, one a byte, as numbers before their scale, less `Less`.
template <DType Type, int Less = 0>
GPU_FN Four numbers(uint32_t q) {
  constexpr BlockLayout layout = block_layout(Type);
  int offset = 128 + Less;
  if constexpr (layout.quant == Quant::offset) {
    offset = layout.offset + Less;
  } else if constexpr (layout.quant == Quant::signed_byte) {
    q ^= 0x80808080u;
  } else {
    const uint32_t pairs = q | q >> 4;  // nibbles side by side
    q = levels<layout.quant>((pairs & 0xFF) | (pairs >> 8 & 0xFF00));
  }
  Four four;
  GPU_UNROLL
  for (int i = 0; i < 4; ++i) four.x[i] = gpu::byte_less(q, i, offset);
  return four;
}

struct Eight {
  Four low, high;
};

// Of a word of nibbles both dwords' numbers.
template <DType Type, int Less = 0>
GPU_FN Eight nibble_numbers(uint32_t word) {
  constexpr BlockLayout layout = block_layout(Type);
  static_assert(layout.base_bits == 4 && layout.upper_bits == 0);
  Eight eight;
  if constexpr (layout.quant == Quant::offset) {
    // A nibble that begins at bit p <= 16 needn't be moved: below an exponent which makes the first bit behind it 1 it
    // is 2^(23 - p) + q.
    const uint32_t upper = word >> 12;
    GPU_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int p = i < 5 ? 4 * i : 4 * i - 12;
      const uint32_t exponent = static_cast<uint32_t>(150 - p) << 23;
      const float x = gpu::from_bits(gpu::and_or(i < 5 ? word : upper, 15u << p, exponent)) -
                      static_cast<float>((0x800000 >> p) + layout.offset + Less);
      (i % 2 == 0 ? eight.low : eight.high).x[i / 2] = x;
    }
  } else {
    GPU_UNROLL
    for (int i = 0; i < 8; i += 4) {  // nibbles of two elements of the lower dword and two of the upper by turns
      const uint32_t four = levels<layout.quant>(word >> 4 * i);
      GPU_UNROLL
      for (int j = 0; j < 4; ++j)
        (j % 2 == 0 ? eight.low : eight.high).x[(i + j) / 2] = gpu::byte_less(four, j, 128 + Less);
    }
  }
  return eight;
}

// From a record's d and dmin (or m), and byte i of the words that hold what belongs to the half: six-bit scales put
// together already.
template <DType Type>
GPU_FN ScaleMin scale_of(float d, float m, uint32_t s, uint32_t t, int i) {
  constexpr Scales scales = block_layout(Type).scales;
  if constexpr (scales == Scales::e8m0)
    return {e8m0_half_of(s >> 8 * i & 255), 0};
  else if constexpr (scales == Scales::half)
    return {d, 0};
  else if constexpr (scales == Scales::half_min)
    return {d, m};
  else if constexpr (scales == Scales::k32 || scales == Scales::k16)
    return {gpu::mul(d, gpu::byte_less(s ^ 0x80808080u, i, 128)), 0};
  else if constexpr (scales == Scales::k32_min)
    return {gpu::mul(d, gpu::byte_less(s, i, 0)), -gpu::mul(m, gpu::byte_less(t, i, 0))};
  else if constexpr (scales == Scales::k16_six)
    return {gpu::mul(d, gpu::byte_less(s, i, 32)), 0};
  else
    return {gpu::mul(d, gpu::byte_less(s & 0x0F0F0F0Fu, i, 0)),
            -gpu::mul(m, gpu::byte_less(s >> 4 & 0x0F0F0F0Fu, i, 0))};
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

  // A group has less than 2^32 words.
  GPU_FN uint32_t base_at(int64_t b) const { return static_cast<uint32_t>(b) * base_words; }
  GPU_FN uint32_t upper_at(int64_t b) const {
    return static_cast<uint32_t>(blocks) * base_words + static_cast<uint32_t>(b) * upper_words;
  }
  GPU_FN uint32_t record_at(int64_t b) const {
    const uint32_t record = super ? static_cast<uint32_t>(b) / 8 : static_cast<uint32_t>(b);
    return static_cast<uint32_t>(blocks) * (base_words + upper_words) + record * record_words;
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
    const uint32_t record = record_at(b);
    const int j = static_cast<int>(b & 7);
    float d = 0, m = 0;
    uint32_t s = 0, t = 0;
    if constexpr (At::has_d) d = half(record + r / 2, r);
    if constexpr (At::has_m) m = half(record + At::m + r / 2, r);
    if constexpr (At::has_s) s = words[record + At::s(j, h) + r / 4];
    if constexpr (At::has_t) t = words[record + At::t(j, h) + r / 4];
    return scale_of<Type>(d, m, scale_bytes<Type>(s, t, j, h), t, r % 4);
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

// What the scales of four rows of a block are made from, in registers.
template <DType Type>
struct QuadScales {
  using Group = PackedGroup<Type>;
  using At = RecordAt<Type>;
  static constexpr int halves = Group::halves ? 2 : 1;

  uint32_t d[2], m[2], s[halves], t[halves];

  // Rows 4 quad ... 4 quad + 3.
  GPU_FN void load_scales(const Group& group, int64_t b, int quad) {
    const int j = static_cast<int>(b & 7);
    const auto halfs = group.words + (group.record_at(b) + quad * 2), bytes = halfs - quad;
    GPU_UNROLL
    for (int i = 0; i < 2; ++i) {
      if constexpr (At::has_d) d[i] = halfs[i];
      if constexpr (At::has_m) m[i] = halfs[At::m + i];
    }
    GPU_UNROLL
    for (int h = 0; h < halves; ++h) {
      if constexpr (At::has_s) s[h] = bytes[At::s(j, h)];
      if constexpr (At::has_t) t[h] = bytes[At::t(j, h)];
    }
  }
  // Of row `row` (0 ... 3), a constant where this is fast.
  GPU_FN ScaleMin scale_min(int64_t b, int h, int row) const {
    float scale = 0, min = 0;
    uint32_t bytes = 0, more = 0;
    if constexpr (At::has_d) scale = gpu::from_half(static_cast<uint16_t>(d[row / 2] >> row % 2 * 16));
    if constexpr (At::has_m) min = gpu::from_half(static_cast<uint16_t>(m[row / 2] >> row % 2 * 16));
    if constexpr (At::has_t) more = t[h];
    if constexpr (At::has_s) bytes = scale_bytes<Type>(s[h], more, static_cast<int>(b & 7), h);
    return scale_of<Type>(scale, min, bytes, more, row);
  }

  GPU_FN static uint32_t word_of(const gpu::U4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
};

// A block of four rows of a group, in registers: what a thread can load 16 bytes a time, and the scales' words hold.
template <DType Type>
struct PackedQuad : QuadScales<Type> {
  using Group = PackedGroup<Type>;
  using QuadScales<Type>::word_of;
  static constexpr BlockLayout layout = Group::layout;

  gpu::U4 base[layout.base_bits], upper[layout.upper_bits ? layout.upper_bits : 1];

  GPU_FN void load(const Group& group, int64_t b, int quad) {
    const auto low = group.words + (group.base_at(b) + quad * 4);
    GPU_UNROLL
    for (int i = 0; i < layout.base_bits; ++i) base[i] = gpu::load16(low + i * 8);
    if constexpr (layout.upper_bits != 0) {
      const auto high = group.words + (group.upper_at(b) + quad * 4);
      GPU_UNROLL
      for (int i = 0; i < layout.upper_bits; ++i) upper[i] = gpu::load16(high + i * 8);
    }
    this->load_scales(group, b, quad);
  }
  // Of row `row` (0 ... 3); g, h and row are constants where this is fast.
  GPU_FN uint32_t quants(int g, int row) const {
    uint32_t q = plane_bits<layout.base_bits>(word_of(base[plane_word<layout.base_bits>(g)], row), g);
    if constexpr (layout.upper_bits != 0)
      q |= plane_bits<layout.upper_bits>(word_of(upper[plane_word<layout.upper_bits>(g)], row), g) << layout.base_bits;
    return q;
  }
  // Dwords g and g + 4 of a row (g < 4) as numbers, less `Less`.
  template <int Less>
  GPU_FN Eight numbers_of(int g, int row) const {
    if constexpr (layout.base_bits == 4 && layout.upper_bits == 0)
      return nibble_numbers<Type, Less>(word_of(base[g], row));
    else
      return {numbers<Type, Less>(quants(g, row)), numbers<Type, Less>(quants(g + 4, row))};
  }
};

// A matrix in rows8. Element 4 g + i of block b of row r is group(r / 8).decode(b, g, r % 8).x[i].
template <DType Type>
struct PackedMatrix {
  gpu::Ptr<const uint32_t> words;
  int64_t group_words, blocks;

  GPU_FN PackedGroup<Type> group(int64_t g) const { return {words + g * group_words, blocks}; }
};

}  // namespace consonant::GPU_BUILD
