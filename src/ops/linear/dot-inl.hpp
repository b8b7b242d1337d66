// SPDX-License-Identifier: Apache-2.0
// Sums of products of bytes, a lane a row: what each instruction set has for them. Compiled once a Highway target.
#if defined(CONSONANT_LINEAR_DOT_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CONSONANT_LINEAR_DOT_INL
#undef CONSONANT_LINEAR_DOT_INL
#else
#define CONSONANT_LINEAR_DOT_INL
#endif

#include "ops/linear/blocks-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

// Dot<limit, calls, dot> sums over the calls of add the four products of each lane of w and x. `limit` is the greatest
// byte of w, which is unsigned; 0 says that w is signed. x lies in -127 ... 127. Calls are numbered 0 ... calls - 1 by
// `i`. With `dot` it uses the instruction that cpu_has_dot() is about; `dot_beside` says whether this target may meet
// one.
//
// Where the instruction takes unsigned bytes only, signed ones are biased by 128, and the sum starts at -128 times the
// sum of x: dot_needs_bias says so to the one who supplies it. All of this is exact.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2

constexpr bool dot_beside = HWY_TARGET == HWY_AVX2;
template <bool dot>
constexpr bool dot_needs_bias = dot || HWY_TARGET <= HWY_AVX3_DL;

// In assembly, so that each target has the encoding that its machines know, whatever the compiler's set of features.
#if HWY_TARGET <= HWY_AVX3_DL
HWY_INLINE void add_quads(__m256i& sum, __m256i w, __m256i x) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
}
#else
HWY_INLINE void add_quads(__m256i& sum, __m256i w, __m256i x) {
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(w), "x"(x));
}
#endif

template <int limit, int calls>
class VnniDot {
 public:
  HWY_INLINE void start(int32_t bias) { sum_ = limit == 0 ? _mm256_set1_epi32(bias) : _mm256_setzero_si256(); }
  template <int i>
  HWY_INLINE void add(VecBytes w, VecBytes x) {
    if constexpr (limit == 0) w = hn::Xor(w, hn::Set(Bytes(), 0x80));
    add_quads(sum_, w.raw, x.raw);
  }
  HWY_INLINE VecInts total() const { return VecInts{sum_}; }

 private:
  __m256i sum_;
};

#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

constexpr bool dot_beside = false;
template <bool>
constexpr bool dot_needs_bias = false;

#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3

#if HWY_TARGET <= HWY_AVX2
HWY_INLINE __m256i pairs(__m256i w, __m256i x) { return _mm256_maddubs_epi16(w, x); }
HWY_INLINE __m256i quads(__m256i x) { return _mm256_madd_epi16(x, _mm256_set1_epi16(1)); }
HWY_INLINE __m256i plus16(__m256i a, __m256i b) { return _mm256_add_epi16(a, b); }
HWY_INLINE __m256i plus32(__m256i a, __m256i b) { return _mm256_add_epi32(a, b); }
HWY_INLINE __m256i magnitude(__m256i x) { return _mm256_abs_epi8(x); }
HWY_INLINE __m256i with_sign(__m256i x, __m256i of) { return _mm256_sign_epi8(x, of); }
#else
HWY_INLINE __m128i pairs(__m128i w, __m128i x) { return _mm_maddubs_epi16(w, x); }
HWY_INLINE __m128i quads(__m128i x) { return _mm_madd_epi16(x, _mm_set1_epi16(1)); }
HWY_INLINE __m128i plus16(__m128i a, __m128i b) { return _mm_add_epi16(a, b); }
HWY_INLINE __m128i plus32(__m128i a, __m128i b) { return _mm_add_epi32(a, b); }
HWY_INLINE __m128i magnitude(__m128i x) { return _mm_abs_epi8(x); }
HWY_INLINE __m128i with_sign(__m128i x, __m128i of) { return _mm_sign_epi8(x, of); }
#endif

// Sums of the two products of each lane, of 16 bits each.
constexpr bool has_pairs = true;
#if HWY_TARGET <= HWY_AVX2
HWY_INLINE VecInts sum_of_pairs(VecShorts a, VecShorts b) { return VecInts{_mm256_madd_epi16(a.raw, b.raw)}; }
#else
HWY_INLINE VecInts sum_of_pairs(VecShorts a, VecShorts b) { return VecInts{_mm_madd_epi16(a.raw, b.raw)}; }
#endif

// Sums of two products have 16 bits, as many of them are added before widening as surely fit.
template <int limit, int calls>
class PairsDot {
  using Raw = decltype(VecInts().raw);
  static constexpr int fit = limit == 0 ? 1 : 32767 / (2 * 127 * limit);

 public:
  HWY_INLINE void start(int32_t) {}
  template <int i>
  HWY_INLINE void add(VecBytes w, VecBytes x) {
    const Raw two = limit == 0 ? pairs(magnitude(w.raw), with_sign(x.raw, w.raw)) : pairs(w.raw, x.raw);
    narrow_ = i % fit == 0 ? two : plus16(narrow_, two);
    // Keeps the sums of a tile in their registers: compilers would reorder integer sums, and run out of registers.
    asm("" : "+x"(narrow_));
    if constexpr (i % fit == fit - 1 || i == calls - 1) {
      wide_ = i < fit ? quads(narrow_) : plus32(wide_, quads(narrow_));
      asm("" : "+x"(wide_));
    }
  }
  HWY_INLINE VecInts total() const { return VecInts{wide_}; }

 private:
  Raw narrow_, wide_;
};

#if HWY_TARGET <= HWY_AVX2
template <int limit, int calls, bool dot>
using Dot = std::conditional_t<dot_needs_bias<dot>, VnniDot<limit, calls>, PairsDot<limit, calls>>;
#else
template <int limit, int calls, bool>
using Dot = PairsDot<limit, calls>;
#endif

#elif HWY_TARGET == HWY_NEON

constexpr bool dot_beside = true;
template <bool>
constexpr bool dot_needs_bias = false;

template <int limit, int calls, bool dot>
class Dot {
 public:
  HWY_INLINE void start(int32_t) { sum_ = vdupq_n_s32(0); }
  template <int i>
  HWY_INLINE void add(VecBytes w, VecBytes x) {
    const int8x16_t a = vreinterpretq_s8_u8(w.raw), b = vreinterpretq_s8_u8(x.raw);
    if constexpr (dot) {  // in assembly, as the target has no name for the extension
      asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum_) : "w"(a), "w"(b));
    } else {
      const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)));
      const int32x4_t high = vpaddlq_s16(vmull_high_s8(a, b));
      sum_ = vaddq_s32(sum_, vpaddq_s32(low, high));
    }
  }
  HWY_INLINE VecInts total() const { return VecInts(sum_); }

 private:
  int32x4_t sum_;
};

#else

constexpr bool dot_beside = false;
template <bool>
constexpr bool dot_needs_bias = false;

template <int limit, int calls, bool>
class Dot {
 public:
  HWY_INLINE void start(int32_t) { sum_ = hn::Zero(Ints()); }
  template <int i>
  HWY_INLINE void add(VecBytes w, VecBytes x) {
    sum_ = hn::Add(sum_,
                   hn::Add(hn::Add(product<0>(w, x), product<1>(w, x)), hn::Add(product<2>(w, x), product<3>(w, x))));
  }
  HWY_INLINE VecInts total() const { return sum_; }

 private:
  template <int byte>
  static HWY_INLINE VecInts element(VecBytes x) {
    return hn::ShiftRight<24>(hn::ShiftLeft<24 - 8 * byte>(hn::BitCast(Ints(), x)));
  }
  template <int byte>
  static HWY_INLINE VecInts product(VecBytes w, VecBytes x) {
    return hn::Mul(element<byte>(w), element<byte>(x));
  }

  VecInts sum_;
};

#endif

#if !HWY_ARCH_X86 || HWY_TARGET > HWY_SSSE3
constexpr bool has_pairs = false;  // no instruction for it
HWY_INLINE VecInts sum_of_pairs(VecShorts a, VecShorts b) {
  const VecInts x = hn::BitCast(Ints(), a), y = hn::BitCast(Ints(), b);
  const auto low = [](VecInts v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
  return hn::Add(hn::Mul(low(x), low(y)), hn::Mul(hn::ShiftRight<16>(x), hn::ShiftRight<16>(y)));
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#endif  // include guard, once a target
