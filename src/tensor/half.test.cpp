// SPDX-License-Identifier: Apache-2.0
#include "tensor/half.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <random>

namespace consonant {
namespace {

// The value of a binary16 or bfloat16 pattern out of its three fields, in double, where it is exact.
double value_of(uint16_t bits, int mantissa_bits, int bias) {
  const int exponent_bits = 15 - mantissa_bits, exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}
double value_of(Half x) { return value_of(x.bits, 10, 15); }
double value_of(BFloat16 x) { return value_of(x.bits, 7, 127); }

template <class T>
T narrow(float x);
template <>
Half narrow<Half>(float x) {
  return to_half(x);
}
template <>
BFloat16 narrow<BFloat16>(float x) {
  return to_bfloat16(x);
}

template <class T>
class Narrow : public testing::Test {};
using Types = testing::Types<Half, BFloat16>;
TYPED_TEST_SUITE(Narrow, Types);

TYPED_TEST(Narrow, EveryPatternIsExactBothWays) {
  for (uint32_t p = 0; p < 0x10000; ++p) {
    const TypeParam x{static_cast<uint16_t>(p)};
    const float wide = to_float(x);
    const double want = value_of(x);
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(wide)) << p;
      const uint16_t back = narrow<TypeParam>(wide).bits;
      ASSERT_TRUE(std::isnan(value_of(TypeParam{back}))) << p;
      ASSERT_EQ(back & 0x8000u, p & 0x8000u) << p;
    } else {
      ASSERT_EQ(static_cast<double>(wide), want) << p;
      ASSERT_EQ(std::signbit(wide), (p & 0x8000) != 0) << p;
      ASSERT_EQ(narrow<TypeParam>(wide).bits, p);
    }
  }
}

// Nearest, ties to even, judged by the neighbours of the result. Infinity counts as the value that would follow the
// largest finite one: from halfway to there on, a number rounds to infinity.
template <class T>
bool is_nearest_even(float x) {
  const T y = narrow<T>(x);
  const uint16_t magnitude = y.bits & 0x7FFF;
  const T infinity{narrow<T>(std::numeric_limits<float>::infinity()).bits};
  const T largest{static_cast<uint16_t>(infinity.bits - 1)}, second{static_cast<uint16_t>(infinity.bits - 2)};
  const double past = 2 * value_of(largest) - value_of(second);
  const auto value = [&](int bits) { return bits == infinity.bits ? past : value_of(T{static_cast<uint16_t>(bits)}); };
  if (magnitude > infinity.bits) return false;
  if (std::signbit(x) != ((y.bits & 0x8000) != 0)) return false;
  if (std::isinf(x)) return magnitude == infinity.bits;
  const double want = std::fabs(static_cast<double>(x)), error = std::fabs(want - value(magnitude));
  if (magnitude == infinity.bits && want > past) return true;
  const bool even = (magnitude & 1) == 0;
  for (int other : {magnitude - 1, magnitude + 1}) {
    if (other < 0 || other > infinity.bits) continue;
    const double distance = std::fabs(want - value(other));
    if (distance < error || (distance == error && !even)) return false;
  }
  return true;
}

TYPED_TEST(Narrow, RoundsToNearestEven) {
  const bool held = rc::check([](uint32_t bits) {
    const float x = std::bit_cast<float>(bits);
    RC_PRE(!std::isnan(x));
    RC_ASSERT(is_nearest_even<TypeParam>(x));
  });
  EXPECT_TRUE(held);
  std::mt19937 random(1);
  for (int i = 0; i < 2000000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(x)) continue;
    ASSERT_TRUE(is_nearest_even<TypeParam>(x)) << std::bit_cast<uint32_t>(x);
  }
}

// The midpoints between neighbours, and the floats just beside them, are where rounding goes wrong.
TYPED_TEST(Narrow, RoundsMidpoints) {
  const uint16_t infinity = narrow<TypeParam>(std::numeric_limits<float>::infinity()).bits;
  for (uint16_t p = 0; p + 1 < infinity; ++p) {
    const auto next = static_cast<uint16_t>(p + 1);
    const auto middle = static_cast<float>((value_of(TypeParam{p}) + value_of(TypeParam{next})) / 2);
    const uint16_t even = p % 2 == 0 ? p : next;
    ASSERT_EQ(narrow<TypeParam>(middle).bits, even) << p;
    ASSERT_EQ(narrow<TypeParam>(-middle).bits, even | 0x8000) << p;
    ASSERT_EQ(narrow<TypeParam>(std::nextafter(middle, 0.f)).bits, p);
    ASSERT_EQ(narrow<TypeParam>(std::nextafter(middle, std::numeric_limits<float>::infinity())).bits, next) << p;
  }
}

TYPED_TEST(Narrow, NanStaysNanWithItsSign) {
  for (uint32_t mantissa : {1u, 0x1000u, 0x1FFFu, 0xFFFFu, 0x10000u, 0x400000u, 0x7FFFFFu})
    for (uint32_t sign : {0u, 0x80000000u}) {
      const TypeParam y = narrow<TypeParam>(std::bit_cast<float>(sign | 0x7F800000u | mantissa));
      EXPECT_TRUE(std::isnan(value_of(y))) << mantissa;
      EXPECT_EQ((y.bits & 0x8000) != 0, sign != 0);
    }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(to_half(1.f).bits, 0x3C00);
  EXPECT_EQ(to_half(-2.f).bits, 0xC000);
  EXPECT_EQ(to_half(65504.f).bits, 0x7BFF);
  EXPECT_EQ(to_half(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(to_half(65520.f).bits, 0x7C00);
  EXPECT_EQ(to_half(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(to_half(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(to_half(0x1.000002p-25f).bits, 0x0001);
  EXPECT_EQ(to_half(-0.f).bits, 0x8000);
  EXPECT_EQ(to_half(0x1p-14f).bits, 0x0400);
  EXPECT_EQ(to_half(0x1.ffffp-15f).bits, 0x0400);
  EXPECT_EQ(to_half(0.1f).bits, 0x2E66);
  EXPECT_EQ(to_bfloat16(0.1f).bits, 0x3DCD);
  EXPECT_EQ(to_bfloat16(3.4e38f).bits, 0x7F80);
  EXPECT_EQ(to_bfloat16(0x1p-149f).bits, 0x0000);
}

#if defined(__FLT16_MANT_DIG__) && !defined(__clang__)  // clang 14 names the limits of a type that it lacks
TEST(Half, AgreesWithTheCompiler) {
  std::mt19937 random(2);
  for (int i = 0; i < 2000000; ++i) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(x)) continue;
    const auto want = static_cast<_Float16>(x);
    ASSERT_EQ(to_half(x).bits, std::bit_cast<uint16_t>(want)) << std::bit_cast<uint32_t>(x);
    ASSERT_EQ(to_float(to_half(x)), static_cast<float>(want));
  }
}
#endif

}  // namespace
}  // namespace consonant
