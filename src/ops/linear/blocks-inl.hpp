// SPDX-License-Identifier: Apache-2.0
// Groups of rows8 (tensor/packed_layout.hpp) in vectors, a lane a row. Compiled once a Highway target.
#if defined(CONSONANT_LINEAR_BLOCKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CONSONANT_LINEAR_BLOCKS_INL
#undef CONSONANT_LINEAR_BLOCKS_INL
#else
#define CONSONANT_LINEAR_BLOCKS_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <type_traits>

#include "tensor/blocks.hpp"
#include "tensor/packed_layout.hpp"

#define CONSONANT_INLINE_LAMBDA HWY_ATTR __attribute__((always_inline))

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A vector holds the eight rows, or, where vectors have 128 bits, a part of four: kernels run once a part.
using Floats = hn::CappedTag<float, 8>;
using Ints = hn::RebindToSigned<Floats>;
using Words = hn::Repartition<uint16_t, Ints>;
using Shorts = hn::Repartition<int16_t, Ints>;
using Bytes = hn::Repartition<uint8_t, Ints>;
using VecFloats = hn::Vec<Floats>;
using VecInts = hn::Vec<Ints>;
using VecBytes = hn::Vec<Bytes>;
using VecShorts = hn::Vec<Shorts>;

constexpr int part_rows = static_cast<int>(hn::MaxLanes(Floats()));
constexpr int parts = 8 / part_rows;

template <int n>
using Constant = std::integral_constant<int, n>;

template <int first, int last, class F>
HWY_INLINE void unroll(const F& f) {
  if constexpr (first < last) {
    f(Constant<first>());
    unroll<first + 1, last>(f);
  }
}

// Where the quants and scales of a group's rows lie, for the part of rows that starts at `row`.
template <DType type>
struct Group {
  static constexpr BlockLayout layout = block_layout(type);

  // Bytes from this group to the next.
  static constexpr int64_t bytes(int64_t blocks) { return (layout.end(blocks) + 31) / 32 * 32; }

  Group(const std::byte* group, int64_t blocks, int row)
      : base(reinterpret_cast<const uint8_t*>(group) + 4 * row),
        upper(base + layout.upper_at(blocks)),
        scales(reinterpret_cast<const uint8_t*>(group) + layout.scales_at(blocks)),
        row(row) {}

  const uint8_t* base;
  const uint8_t* upper;
  const uint8_t* scales;
  int row;
};

// Asks for what a pass over the groups reads in a while: quants 2 KB on (into the next group, past the end of this
// one), and this block's other bytes of the next group.
template <DType type>
HWY_INLINE void prefetch(const Group<type>& group, int64_t b, int64_t blocks) {
  constexpr BlockLayout layout = block_layout(type);
  const int64_t ahead = b + 2048 / layout.base_bytes(), next = Group<type>::bytes(blocks);
  const uint8_t* base = group.base + ahead * layout.base_bytes();
  if (ahead >= blocks) base += next - blocks * layout.base_bytes();
  for (int64_t at = 0; at < layout.base_bytes(); at += 64) hwy::Prefetch(base + at);
  if constexpr (layout.upper_bits != 0) hwy::Prefetch(group.upper + b * layout.upper_bytes() + next);
  const int64_t record = layout.super() ? b * layout.record_bytes() / 8 : b * layout.record_bytes();
  hwy::Prefetch(group.scales + record + next);
}

// Bits `from` ... of each byte moved to `to` ..., all others zero.
template <int from, int to, int bits>
HWY_INLINE VecBytes move_bits(VecBytes raw) {
  const Words words;
  auto wide = hn::BitCast(words, raw);
  if constexpr (from > to) wide = hn::ShiftRight<from - to>(wide);
  if constexpr (from < to) wide = hn::ShiftLeft<to - from>(wide);
  return hn::And(hn::BitCast(Bytes(), wide), hn::Set(Bytes(), ((1 << bits) - 1) << to));
}

// Dword g of block b: four quants a row.
template <DType type, int g>
HWY_INLINE VecBytes quants(const Group<type>& group, int64_t b) {
  constexpr BlockLayout layout = block_layout(type);
  const Bytes d;
  const uint8_t* base = group.base + b * layout.base_bytes();
  if constexpr (layout.base_bits == 8) return hn::LoadU(d, base + g * 32);
  VecBytes q;
  if constexpr (layout.base_bits == 4) q = move_bits<g / 4 * 4, 0, 4>(hn::LoadU(d, base + g % 4 * 32));
  if constexpr (layout.base_bits == 2) q = move_bits<g % 4 * 2, 0, 2>(hn::LoadU(d, base + g / 4 * 32));
  const uint8_t* upper = group.upper + b * layout.upper_bytes();
  if constexpr (layout.upper_bits == 1) q = hn::Or(q, move_bits<g, layout.base_bits, 1>(hn::LoadU(d, upper)));
  if constexpr (layout.upper_bits == 2)
    q = hn::Or(q, move_bits<g % 4 * 2, layout.base_bits, 2>(hn::LoadU(d, upper + g / 4 * 32)));
  return q;
}

HWY_INLINE VecFloats half_scales(const uint8_t* from) {
  const hn::Rebind<hwy::float16_t, Floats> d;
  return hn::PromoteTo(Floats(), hn::LoadU(d, reinterpret_cast<const hwy::float16_t*>(from)));
}

template <class T>
HWY_INLINE VecInts byte_scales(const uint8_t* from) {
  return hn::PromoteTo(Ints(), hn::LoadU(hn::Rebind<T, Ints>(), reinterpret_cast<const T*>(from)));
}

HWY_INLINE VecFloats floats(VecInts x) { return hn::ConvertTo(Floats(), x); }

HWY_INLINE VecFloats e8m0_halves(VecInts e) {  // e8m0_half of every lane
  const Ints d;
  const auto tiny = hn::ShiftLeft<21>(hn::Add(e, hn::Set(d, 1)));
  const auto usual = hn::ShiftLeft<23>(hn::Sub(e, hn::Set(d, 1)));
  const auto bits = hn::IfThenElse(hn::Lt(e, hn::Set(d, 2)), tiny, usual);
  return hn::BitCast(Floats(), hn::IfThenElse(hn::Eq(e, hn::Set(d, 255)), hn::Set(d, 0x7FC00000), bits));
}

// Scale of half h of block b (h = 0 stands for both where a block has one scale), as decode_row rounds it.
template <DType type>
HWY_INLINE VecFloats scale(const Group<type>& group, int64_t b, int h) {
  constexpr BlockLayout layout = block_layout(type);
  const int64_t in = layout.super() ? b % 8 : 0, j = 2 * in + h;
  const uint8_t* record = group.scales + (layout.super() ? b / 8 : b) * layout.record_bytes();
  const uint8_t* bytes = record + group.row;
  if constexpr (layout.scales == Scales::e8m0) return e8m0_halves(byte_scales<uint8_t>(bytes));
  const VecFloats d = half_scales(record + 2 * group.row);
  if constexpr (layout.scales == Scales::k32) return hn::Mul(d, floats(byte_scales<int8_t>(bytes + 16 + 8 * in)));
  if constexpr (layout.scales == Scales::k32_min) return hn::Mul(d, floats(byte_scales<uint8_t>(bytes + 32 + 16 * in)));
  if constexpr (layout.scales == Scales::k16) return hn::Mul(d, floats(byte_scales<int8_t>(bytes + 16 + 8 * j)));
  if constexpr (layout.scales == Scales::k16_six) {
    const Ints di;
    const auto low = hn::ShiftRightSame(byte_scales<uint8_t>(bytes + 16 + j % 8 * 8), static_cast<int>(j / 8 * 4));
    const auto high = hn::ShiftRightSame(byte_scales<uint8_t>(bytes + 80 + j % 4 * 8), static_cast<int>(j / 4 * 2));
    const auto six = hn::Or(hn::And(low, hn::Set(di, 15)), hn::ShiftLeft<4>(hn::And(high, hn::Set(di, 3))));
    return hn::Mul(d, floats(hn::Sub(six, hn::Set(di, 32))));
  }
  if constexpr (layout.scales == Scales::k16_min)
    return hn::Mul(d, floats(hn::And(byte_scales<uint8_t>(bytes + 32 + 8 * j), hn::Set(Ints(), 15))));
  return d;
}

// What is added to each element after the scale, for types that have a minimum.
template <DType type>
HWY_INLINE VecFloats minimum(const Group<type>& group, int64_t b, int h) {
  constexpr BlockLayout layout = block_layout(type);
  const int64_t in = layout.super() ? b % 8 : 0, j = 2 * in + h;
  const uint8_t* record = group.scales + (layout.super() ? b / 8 : b) * layout.record_bytes();
  const uint8_t* bytes = record + group.row;
  const VecFloats m = half_scales(record + 16 + 2 * group.row);
  if constexpr (layout.scales == Scales::half_min) return m;
  if constexpr (layout.scales == Scales::k32_min)
    return hn::Neg(hn::Mul(m, floats(byte_scales<uint8_t>(bytes + 40 + 16 * in))));
  return hn::Neg(hn::Mul(m, floats(hn::ShiftRight<4>(byte_scales<uint8_t>(bytes + 32 + 8 * j)))));
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#endif  // include guard, once a target
