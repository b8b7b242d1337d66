// SPDX-License-Identifier: Apache-2.0
// Products of block-quantised weights and activations of one or two parts of 8 bits. One order of float operations for
// every output element, whatever the tile, the chunk and the instruction set (given that it has fused multiply-add):
// for blocks b ascending,
//   acc = fma(float(sum of integer products), scale_w * unit_x, acc)   for each half of b where halves have scales
//   acc = fma(minimum_w, sum of x, acc)                                where the type has one, or an offset
// With two parts the integer is 256 (sum with q) + (sum with rest), and unit_x a 256th of the scale of x.
#include "ops/linear/dot_cpu.hpp"
#include "ops/linear/product.hpp"
#include "ops/linear/targets.hpp"
#include "tensor/activations.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/linear/int8.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: compiled once a target.
#include "ops/linear/dot-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

// How the products of a type are formed.
template <DType type, int parts, bool dot>
struct Form {
  static constexpr BlockLayout layout = block_layout(type);
  static constexpr bool is_signed = layout.quant == Quant::signed_byte || layout.quant == Quant::iq4;
  static constexpr bool fp4 = layout.quant == Quant::fp4;  // levels are raised by 12 to be unsigned
  static constexpr int limit = is_signed ? 0 : fp4 ? 24 : (1 << (layout.base_bits + layout.upper_bits)) - 1;
  static constexpr int offset = fp4 ? 12 : layout.offset;
  static constexpr bool has_minimum = layout.minimum() || offset != 0;
  static constexpr bool has_bias = dot_needs_bias<dot> && is_signed;
  static constexpr int halves = layout.halves() ? 2 : 1;
  // Of a block of x, for T tokens each: the unit; the sums of x that minima multiply; the biases of the integer sums.
  static constexpr int sums = has_minimum ? halves : 0;
  static constexpr int fields = 1 + sums + (has_bias ? parts : 0);
};

// A quant as the dot product takes it.
template <DType type, int g>
HWY_INLINE VecBytes factor(const Group<type>& group, int64_t b) {
  const VecBytes q = quants<type, g>(group, b);
  constexpr Quant quant = block_layout(type).quant;
  if constexpr (quant == Quant::iq4)
    return hn::TableLookupBytes(hn::LoadDup128(Bytes(), reinterpret_cast<const uint8_t*>(iq4_values.data())), q);
  if constexpr (quant == Quant::fp4) {
    alignas(16) static constexpr uint8_t raised[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};
    return hn::TableLookupBytes(hn::LoadDup128(Bytes(), raised), q);
  }
  return q;
}

HWY_INLINE VecBytes four_of(const int8_t* x) {  // x[0 ... 3] in every lane
  int32_t four;
  std::memcpy(&four, x, sizeof four);
  return hn::BitCast(Bytes(), hn::Set(Ints(), four));
}

HWY_INLINE int32_t int_bits(float x) {
  int32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

template <int parts, class D>
HWY_INLINE VecInts total(const D* sums) {
  if constexpr (parts == 1)
    return sums[0].total();
  else
    return hn::Add(hn::ShiftLeft<8>(sums[0].total()), sums[1].total());
}

// Rows `row` ... of a group times T tokens, whose facts per block are at `facts`. sums: [T][8].
template <DType type, int T, int parts, bool dot>
HWY_NOINLINE void tile(const std::byte* packed, int64_t blocks, int row, const int8_t* x, int64_t x_stride,
                       const float* facts, float* sums) {
  using F = Form<type, parts, dot>;
  constexpr int dwords = 8 / F::halves;
  const Group<type> group(packed, blocks, row);
  VecFloats acc[T];
  for (int t = 0; t < T; ++t) acc[t] = hn::Zero(Floats());
  for (int64_t b = 0; b < blocks; ++b, x += 32, facts += F::fields * T) {
    if constexpr (T <= 2) prefetch(group, b, blocks);  // few tokens: memory sets the pace
    unroll<0, F::halves>([&](auto h) CONSONANT_INLINE_LAMBDA {
      Dot<F::limit, dwords, dot> products[T * parts];
      for (int t = 0; t < T; ++t)
        for (int part = 0; part < parts; ++part)
          products[t * parts + part].start(F::has_bias ? int_bits(facts[(F::fields - parts + part) * T + t]) : 0);
      unroll<0, dwords>([&](auto i) CONSONANT_INLINE_LAMBDA {
        // Dwords that share a byte of nibbles follow each other.
        constexpr int at = h * dwords + i, g = dwords == 8 ? at / 2 + at % 2 * 4 : at;
        const VecBytes w = factor<type, g>(group, b);
        for (int t = 0; t < T; ++t)
          for (int part = 0; part < parts; ++part)
            products[t * parts + part].template add<i>(w, four_of(x + t * x_stride + part * 32 * blocks + 4 * g));
      });
      const VecFloats s = scale(group, b, h);
      for (int t = 0; t < T; ++t)
        acc[t] =
            hn::MulAdd(floats(total<parts>(products + t * parts)), hn::Mul(s, hn::Set(Floats(), facts[t])), acc[t]);
      if constexpr (F::has_minimum) {
        VecFloats m;
        if constexpr (F::layout.minimum())
          m = minimum(group, b, h);
        else
          m = hn::Mul(s, hn::Set(Floats(), static_cast<float>(-F::offset)));
        for (int t = 0; t < T; ++t) acc[t] = hn::MulAdd(m, hn::Set(Floats(), facts[(1 + h) * T + t]), acc[t]);
      }
    });
  }
  for (int t = 0; t < T; ++t) hn::StoreU(acc[t], Floats(), sums + 8 * t + row);
}

// Signed bytes have no room for sums of products in 16 bits, so that a part costs as much as numbers of 16 bits do: x
// of two parts is multiplied as one such number, if there is no instruction for bytes that is better still.
template <DType type, int parts, bool dot>
constexpr bool is_wide =
    has_pairs&& parts == 2 && !dot_needs_bias<dot> && block_layout(type).quant == Quant::signed_byte;

// x as `wide_tile` reads it: of each four numbers the first and the third, then the others.
HWY_INLINE void widen(const ActivationRow& x, int64_t k, int16_t* to) {
  for (int64_t i = 0; i < k; i += 4)
    for (int j = 0; j < 4; ++j) to[i + j % 2 * 2 + j / 2] = static_cast<int16_t>(256 * x.q[i + j] + x.rest[i + j]);
}

HWY_INLINE VecShorts two_of(const int16_t* x) {  // x[0], x[1] in every lane
  int32_t two;
  std::memcpy(&two, x, sizeof two);
  return hn::BitCast(Shorts(), hn::Set(Ints(), two));
}

// As `tile`, of x in 16 bits: the same sums of integers.
template <DType type, int T>
HWY_NOINLINE void wide_tile(const std::byte* packed, int64_t blocks, int row, const int16_t* x, const float* facts,
                            float* sums) {
  const Group<type> group(packed, blocks, row);
  VecFloats acc[T];
  for (int t = 0; t < T; ++t) acc[t] = hn::Zero(Floats());
  for (int64_t b = 0; b < blocks; ++b, x += 32, facts += T) {
    if constexpr (T <= 2) prefetch(group, b, blocks);
    VecInts total[T];
    for (int t = 0; t < T; ++t) total[t] = hn::Zero(Ints());
    unroll<0, 8>([&](auto g) CONSONANT_INLINE_LAMBDA {
      const auto w = hn::BitCast(Shorts(), quants<type, g>(group, b));
      const auto even = hn::ShiftRight<8>(hn::ShiftLeft<8>(w)), odd = hn::ShiftRight<8>(w);
      for (int t = 0; t < T; ++t) {
        const int16_t* four = x + t * 32 * blocks + 4 * g;
        total[t] = hn::Add(total[t], sum_of_pairs(even, two_of(four)));
        total[t] = hn::Add(total[t], sum_of_pairs(odd, two_of(four + 2)));
      }
    });
    const VecFloats s = scale(group, b, 0);
    for (int t = 0; t < T; ++t) acc[t] = hn::MulAdd(floats(total[t]), hn::Mul(s, hn::Set(Floats(), facts[t])), acc[t]);
  }
  for (int t = 0; t < T; ++t) hn::StoreU(acc[t], Floats(), sums + 8 * t + row);
}

template <DType type, int T, int x_parts, bool dot>
HWY_INLINE void tokens_of_group(const Product& p, const std::byte* packed, int64_t group, int64_t token,
                                const float* facts, const int16_t* wide) {
  HWY_ALIGN float sums[T * 8];
  const auto* x = reinterpret_cast<const int8_t*>(p.x + token * p.x_stride);
  for (int part = 0; part < parts; ++part) {
    if constexpr (is_wide<type, x_parts, dot>)
      wide_tile<type, T>(packed, p.weights.k / 32, part * part_rows, wide, facts, sums);
    else
      tile<type, T, x_parts, dot>(packed, p.weights.k / 32, part * part_rows, x, p.x_stride, facts, sums);
  }
  for (int t = 0; t < T; ++t) store_sums(p, group, token + t, sums + 8 * t);
}

// Calls f(tokens of the tile, first token, facts) for tiles of four tokens, then two, then one. Without vectors tokens
// have nothing to share.
template <DType type, int x_parts, bool dot, class F>
HWY_INLINE void for_tiles(const Product& p, const Patch& patch, float* facts, const F& f) {
  const int64_t per_token = p.weights.k / 32 * Form<type, x_parts, dot>::fields;
  int64_t t = patch.first_token;
  const int64_t last = patch.last_token;
  if constexpr (HWY_TARGET != HWY_EMU128) {
    for (; t + 4 <= last; t += 4, facts += 4 * per_token) f(Constant<4>(), t, facts);
    for (; t + 2 <= last; t += 2, facts += 2 * per_token) f(Constant<2>(), t, facts);
  }
  for (; t < last; ++t, facts += per_token) f(Constant<1>(), t, facts);
}

// The facts of T tokens: [block][field][T].
template <DType type, int T, int x_parts, bool dot>
HWY_INLINE void gather_facts(const Product& p, int64_t token, float* facts) {
  using F = Form<type, x_parts, dot>;
  const int64_t k = p.weights.k;
  for (int t = 0; t < T; ++t) {
    const ActivationRow x = ActivationRow::at(p.x + (token + t) * p.x_stride, k, x_parts);
    float* to = facts + t;
    for (int64_t b = 0; b < k / 32; ++b, to += F::fields * T) {
      to[0] = x_parts == 2 ? x.scale[b] / 256 : x.scale[b];
      if constexpr (F::sums == 1) to[T] = x.sum[2 * b] + x.sum[2 * b + 1];
      if constexpr (F::sums == 2) {
        to[T] = x.sum[2 * b];
        to[2 * T] = x.sum[2 * b + 1];
      }
      if constexpr (F::has_bias) {
        for (int part = 0; part < x_parts; ++part) {
          const int8_t* q = (part == 0 ? x.q : x.rest) + 32 * b;
          int32_t sum = 0;
          for (int i = 0; i < 32; ++i) sum += q[i];
          const int32_t bias = -128 * sum;
          std::memcpy(to + (F::fields - x_parts + part) * T, &bias, sizeof bias);
        }
      }
    }
  }
}

template <DType type, int x_parts, bool dot>
void multiply_parts(const Product& p, const Patch& patch, float* facts, std::byte* room) {
  const int64_t k = p.weights.k;
  auto* wide = reinterpret_cast<int16_t*>(facts + facts_of(p, patch.last_token - patch.first_token));
  if constexpr (is_wide<type, x_parts, dot>) {
    for (int64_t t = patch.first_token; t < patch.last_token; ++t)
      widen(ActivationRow::at(p.x + t * p.x_stride, k, x_parts), k, wide + (t - patch.first_token) * k);
  }
  for_tiles<type, x_parts, dot>(p, patch, facts, [&](auto tokens, int64_t token, float* at) CONSONANT_INLINE_LAMBDA {
    gather_facts<type, tokens, x_parts, dot>(p, token, at);
  });
  for (int64_t g = patch.first_group; g < patch.last_group; ++g) {
    const std::byte* packed = packed_group(p, g, room);
    for_tiles<type, x_parts, dot>(p, patch, facts, [&](auto tokens, int64_t token, float* at) CONSONANT_INLINE_LAMBDA {
      tokens_of_group<type, tokens, x_parts, dot>(p, packed, g, token, at, wide + (token - patch.first_token) * k);
    });
  }
}

template <DType type, bool dot>
void multiply_type(const Product& p, const Patch& patch, float* facts, std::byte* room) {
  if (p.parts == 2)
    multiply_parts<type, 2, dot>(p, patch, facts, room);
  else
    multiply_parts<type, 1, dot>(p, patch, facts, room);
}

template <bool dot>
void multiply_any(const Product& p, const Patch& patch, float* facts, std::byte* room) {
  switch (p.weights.type) {
    case DType::q8_0:
      return multiply_type<DType::q8_0, dot>(p, patch, facts, room);
    case DType::q4_0:
      return multiply_type<DType::q4_0, dot>(p, patch, facts, room);
    case DType::q4_1:
      return multiply_type<DType::q4_1, dot>(p, patch, facts, room);
    case DType::q5_0:
      return multiply_type<DType::q5_0, dot>(p, patch, facts, room);
    case DType::q5_1:
      return multiply_type<DType::q5_1, dot>(p, patch, facts, room);
    case DType::q2_k:
      return multiply_type<DType::q2_k, dot>(p, patch, facts, room);
    case DType::q3_k:
      return multiply_type<DType::q3_k, dot>(p, patch, facts, room);
    case DType::q4_k:
      return multiply_type<DType::q4_k, dot>(p, patch, facts, room);
    case DType::q5_k:
      return multiply_type<DType::q5_k, dot>(p, patch, facts, room);
    case DType::q6_k:
      return multiply_type<DType::q6_k, dot>(p, patch, facts, room);
    case DType::iq4_nl:
      return multiply_type<DType::iq4_nl, dot>(p, patch, facts, room);
    case DType::iq4_xs:
      return multiply_type<DType::iq4_xs, dot>(p, patch, facts, room);
    case DType::mxfp4:
      return multiply_type<DType::mxfp4, dot>(p, patch, facts, room);
    default:
      return;  // can_run refuses the rest
  }
}

void int8_patch(const Product& p, const Patch& patch, float* facts, std::byte* room) {
  if constexpr (dot_beside) {
    static const bool has_dot = cpu_has_dot();
    if (has_dot) return multiply_any<true>(p, patch, facts, room);
  }
  multiply_any<false>(p, patch, facts, room);
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(int8_patch);

// The facts of a block of tokens, x in 16 bits where that is read, room for a group.
static int64_t facts_bytes(const Product& p, int64_t tokens) {
  const int64_t wide = p.parts == 2 && p.weights.type == DType::q8_0 ? p.weights.k * tokens * 2 : 0;
  return (facts_of(p, tokens) * 4 + wide + 63) / 64 * 64;
}

int64_t int8_scratch(const Product& p, const Cut& cut) {
  return facts_bytes(p, cut.token_block) + (p.packed ? 0 : p.weights.group_bytes);
}

void multiply_int8(const Product& p, const Patch& patch, std::byte* scratch) {
  const int64_t facts = facts_bytes(p, patch.last_token - patch.first_token);
  HWY_DYNAMIC_DISPATCH(int8_patch)(p, patch, reinterpret_cast<float*>(scratch), scratch + facts);
}

}  // namespace consonant
#endif
