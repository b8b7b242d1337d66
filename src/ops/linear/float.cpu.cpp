// SPDX-License-Identifier: Apache-2.0
// Products in float32: weights are decoded, a range of k at a time, to panels that stay in the first cache, [k][8]
// floats a group, and multiplied by tiles of six tokens and two vectors of rows. For every output element
//   acc = fma(w[k], x[k], acc)   for k ascending
// whatever the tile, the range and the chunk. Of inputs in several taps each range, which is one of a tap then, is such
// a sum from zero, and the ranges' sums are added up in order: rounding errors grow with the longest of them.
#include "ops/linear/product.hpp"
#include "ops/linear/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/float.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: compiled once a target.
#include "ops/linear/blocks-inl.hpp"

#ifndef CONSONANT_LINEAR_FLOAT_ONCE
#define CONSONANT_LINEAR_FLOAT_ONCE
namespace consonant {

constexpr int64_t panel_k = 256;  // a multiple of every block
constexpr int64_t panel_floats = panel_k * 8;

// Sums of the patch's tokens and two groups, the panels of two groups, and room for groups that must be packed.
struct FloatScratch {
  float* sums;
  float* panels;
  std::byte* room;
};

}  // namespace consonant
#endif

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

// Byte `j` of each lane as a number.
template <DType type, int j>
HWY_INLINE VecFloats numbers(VecBytes quants) {
  constexpr BlockLayout layout = block_layout(type);
  const Ints d;
  const auto four = hn::BitCast(d, quants);
  if constexpr (layout.quant == Quant::offset) {
    const hn::RebindToUnsigned<Ints> du;
    const auto q = hn::And(hn::ShiftRight<8 * j>(hn::BitCast(du, four)), hn::Set(du, 255));
    return floats(hn::Sub(hn::BitCast(d, q), hn::Set(d, layout.offset)));
  }
  return floats(hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * j>(four)));
}

template <DType type>
HWY_INLINE VecBytes levels(VecBytes q) {
  constexpr Quant quant = block_layout(type).quant;
  if constexpr (quant == Quant::iq4)
    return hn::TableLookupBytes(hn::LoadDup128(Bytes(), reinterpret_cast<const uint8_t*>(iq4_values.data())), q);
  if constexpr (quant == Quant::fp4)
    return hn::TableLookupBytes(hn::LoadDup128(Bytes(), reinterpret_cast<const uint8_t*>(fp4_doubled.data())), q);
  return q;
}

// Blocks first ... last of a group to a panel, with the roundings of decode_row.
template <DType type>
void decode_blocks(const std::byte* packed, int64_t blocks, int64_t first, int64_t last, float* panel) {
  constexpr BlockLayout layout = block_layout(type);
  for (int row = 0; row < 8; row += part_rows) {
    const Group<type> group(packed, blocks, row);
    float* to = panel + row;
    for (int64_t b = first; b < last; ++b)
      unroll<0, 2>([&](auto h) CONSONANT_INLINE_LAMBDA {
        const VecFloats s = scale(group, b, h);
        VecFloats m = s;
        if constexpr (layout.minimum()) m = minimum(group, b, h);
        unroll<4 * h, 4 * h + 4>([&](auto g) CONSONANT_INLINE_LAMBDA {
          const VecBytes q = levels<type>(quants<type, g>(group, b));
          unroll<0, 4>([&](auto j) CONSONANT_INLINE_LAMBDA {
            VecFloats x = hn::Mul(s, numbers<type, j>(q));
            if constexpr (layout.minimum()) x = hn::Add(x, m);
            hn::StoreU(x, Floats(), to);
            to += 8;
          });
        });
      });
  }
}

template <class Element>
void decode_plain(const std::byte* packed, int64_t first, int64_t last, float* panel) {
  const hn::Rebind<Element, Floats> d;
  const auto* from = reinterpret_cast<const Element*>(packed);
  for (int64_t i = 8 * first; i < 8 * last; i += part_rows)
    hn::StoreU(hn::PromoteTo(Floats(), hn::LoadU(d, from + i)), Floats(), panel + i - 8 * first);
}

// Elements first ... last of a group as [k][8] floats: in `panel`, or where they lie.
const float* decode_range(const PackedShape& w, const std::byte* packed, int64_t first, int64_t last, float* panel) {
  const int64_t blocks = w.k / 32, from = first / 32, to = last / 32;
  switch (w.type) {
    case DType::f32:
      return reinterpret_cast<const float*>(packed) + 8 * first;
    case DType::f16:
      decode_plain<hwy::float16_t>(packed, first, last, panel);
      break;
    case DType::bf16:
      decode_plain<hwy::bfloat16_t>(packed, first, last, panel);
      break;
    case DType::q8_0:
      decode_blocks<DType::q8_0>(packed, blocks, from, to, panel);
      break;
    case DType::q4_0:
      decode_blocks<DType::q4_0>(packed, blocks, from, to, panel);
      break;
    case DType::q4_1:
      decode_blocks<DType::q4_1>(packed, blocks, from, to, panel);
      break;
    case DType::q5_0:
      decode_blocks<DType::q5_0>(packed, blocks, from, to, panel);
      break;
    case DType::q5_1:
      decode_blocks<DType::q5_1>(packed, blocks, from, to, panel);
      break;
    case DType::q2_k:
      decode_blocks<DType::q2_k>(packed, blocks, from, to, panel);
      break;
    case DType::q3_k:
      decode_blocks<DType::q3_k>(packed, blocks, from, to, panel);
      break;
    case DType::q4_k:
      decode_blocks<DType::q4_k>(packed, blocks, from, to, panel);
      break;
    case DType::q5_k:
      decode_blocks<DType::q5_k>(packed, blocks, from, to, panel);
      break;
    case DType::q6_k:
      decode_blocks<DType::q6_k>(packed, blocks, from, to, panel);
      break;
    case DType::iq4_nl:
      decode_blocks<DType::iq4_nl>(packed, blocks, from, to, panel);
      break;
    case DType::iq4_xs:
      decode_blocks<DType::iq4_xs>(packed, blocks, from, to, panel);
      break;
    case DType::mxfp4:
      decode_blocks<DType::mxfp4>(packed, blocks, from, to, panel);
      break;
    default:
      break;  // can_run refuses the rest
  }
  return panel;
}

HWY_INLINE VecFloats load_floats(const float* p) { return hn::LoadU(Floats(), p); }
template <class Element>
HWY_INLINE VecFloats load_floats(const Element* p) {
  return hn::PromoteTo(Floats(), hn::LoadU(hn::Rebind<Element, Floats>(), p));
}

// T tokens times two vectors of rows over n of k; sums [T][16], the vectors at their offsets in it. `apart`: a sum from
// zero that is added to them.
template <int T, class Element>
HWY_NOINLINE void float_tile(const Element* w0, const Element* w1, const float* x, int64_t x_stride, int64_t n,
                             float* sums0, float* sums1, bool apart) {
  const Floats d;
  VecFloats a[T], b[T];
  for (int t = 0; t < T; ++t) {
    a[t] = apart ? hn::Zero(d) : hn::LoadU(d, sums0 + 16 * t);
    b[t] = apart ? hn::Zero(d) : hn::LoadU(d, sums1 + 16 * t);
  }
  for (int64_t k = 0; k < n; ++k) {
    const VecFloats u = load_floats(w0 + 8 * k), v = load_floats(w1 + 8 * k);
    for (int t = 0; t < T; ++t) {
      const VecFloats s = hn::Set(d, x[t * x_stride + k]);
      a[t] = hn::MulAdd(u, s, a[t]);
      b[t] = hn::MulAdd(v, s, b[t]);
    }
  }
  for (int t = 0; t < T; ++t) {
    if (apart) {
      a[t] = hn::Add(hn::LoadU(d, sums0 + 16 * t), a[t]);
      b[t] = hn::Add(hn::LoadU(d, sums1 + 16 * t), b[t]);
    }
    hn::StoreU(a[t], d, sums0 + 16 * t);
    hn::StoreU(b[t], d, sums1 + 16 * t);
  }
}

template <int T, class Element>
HWY_INLINE void float_rows(const Element* w0, const Element* w1, const float* x, int64_t x_stride, int64_t n,
                           float* sums, bool apart) {
  if constexpr (parts == 1) return float_tile<T>(w0, w1, x, x_stride, n, sums, sums + 8, apart);
  float_tile<T>(w0, w0 + 4, x, x_stride, n, sums, sums + 4, apart);
  float_tile<T>(w1, w1 + 4, x, x_stride, n, sums + 8, sums + 12, apart);
}

// Up to six tokens.
template <class Element>
HWY_INLINE void few_rows(int64_t tokens, const Element* w0, const Element* w1, const float* x, int64_t x_stride,
                         int64_t n, float* sums, bool apart) {
  switch (tokens) {
    case 1:
      return float_rows<1>(w0, w1, x, x_stride, n, sums, apart);
    case 2:
      return float_rows<2>(w0, w1, x, x_stride, n, sums, apart);
    case 3:
      return float_rows<3>(w0, w1, x, x_stride, n, sums, apart);
    case 4:
      return float_rows<4>(w0, w1, x, x_stride, n, sums, apart);
    case 5:
      return float_rows<5>(w0, w1, x, x_stride, n, sums, apart);
    case 6:
      return float_rows<6>(w0, w1, x, x_stride, n, sums, apart);
    default:
      return;  // none
  }
}

// Two groups of plain numbers times the few tokens of a decoding step: read from where they lie, since a panel would
// cost more than it saves. False for other types.
bool few_plain_rows(const PackedShape& w, int64_t tokens, const std::byte* packed0, const std::byte* packed1,
                    const float* x, int64_t x_stride, float* sums) {
  const auto multiply = [&](auto element) {
    using Element = decltype(element);
    few_rows(tokens, reinterpret_cast<const Element*>(packed0), reinterpret_cast<const Element*>(packed1), x, x_stride,
             w.k, sums, false);
    return true;
  };
  if (w.type == DType::f16) return multiply(hwy::float16_t{});
  if (w.type == DType::bf16) return multiply(hwy::bfloat16_t{});
  return w.type == DType::f32 && multiply(float{});
}

void float_patch(const Product& p, const Patch& patch, const FloatScratch& scratch) {
  const PackedShape& w = p.weights;
  const int64_t tokens = patch.last_token - patch.first_token, stride = p.x_stride / 4;
  const int64_t tap_k = w.k / p.taps > 0 ? w.k / p.taps : 1;
  const bool apart = p.taps > 1;
  const auto* x = reinterpret_cast<const float*>(p.x) + patch.first_token * stride;
  for (int64_t g = patch.first_group; g < patch.last_group; g += 2) {
    const bool two = g + 1 < patch.last_group;
    const std::byte* packed0 = packed_group(p, g, scratch.room);
    const std::byte* packed1 = two ? packed_group(p, g + 1, scratch.room + w.group_bytes) : packed0;
    std::memset(scratch.sums, 0, static_cast<size_t>(tokens) * 64);
    const bool direct =
        tokens <= 6 && p.taps == 1 && few_plain_rows(w, tokens, packed0, packed1, x, stride, scratch.sums);
    for (int64_t k = 0, n; !direct && k < w.k; k += n) {
      const int64_t tap = k / tap_k, left = (tap + 1) * tap_k - k;
      n = left < panel_k ? left : panel_k;
      const float* w0 = decode_range(w, packed0, k, k + n, scratch.panels);
      const float* w1 = two ? decode_range(w, packed1, k, k + n, scratch.panels + panel_floats) : w0;
      const float* from = x + tap * (p.tap_stride / 4) + (k - tap * tap_k);
      int64_t t = 0;
      for (; t + 6 <= tokens; t += 6) float_rows<6>(w0, w1, from + t * stride, stride, n, scratch.sums + 16 * t, apart);
      few_rows(tokens - t, w0, w1, from + t * stride, stride, n, scratch.sums + 16 * t, apart);
    }
    for (int64_t t = 0; t < tokens; ++t) {
      store_sums(p, g, patch.first_token + t, scratch.sums + 16 * t);
      if (two) store_sums(p, g + 1, patch.first_token + t, scratch.sums + 16 * t + 8);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(float_patch);

int64_t float_scratch(const Product& p, const Cut& cut) {
  return cut.token_block * 64 + 2 * panel_floats * 4 + (p.packed ? 0 : 2 * p.weights.group_bytes);
}

void multiply_float(const Product& p, const Patch& patch, std::byte* scratch) {
  auto* sums = reinterpret_cast<float*>(scratch);
  float* panels = sums + (patch.last_token - patch.first_token) * 16;
  HWY_DYNAMIC_DISPATCH(float_patch)
  (p, patch, {sums, panels, reinterpret_cast<std::byte*>(panels + 2 * panel_floats)});
}

}  // namespace consonant
#endif
