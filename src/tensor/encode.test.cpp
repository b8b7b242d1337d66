// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/error.hpp"
#include "tensor/convert.hpp"
#include "tensor/quants_fixture.hpp"
#include "tensor/validate.hpp"

namespace consonant {
namespace {

using test::QuantsFixture;

const DType quantised[] = {DType::q8_0,   DType::q4_0,   DType::q4_1, DType::q5_0, DType::q5_1,
                           DType::q2_k,   DType::q3_k,   DType::q4_k, DType::q5_k, DType::q6_k,
                           DType::iq4_nl, DType::iq4_xs, DType::mxfp4};

std::vector<std::byte> encode_all(DType type, const std::vector<float>& x, int64_t columns) {
  const int64_t stride = row_bytes(type, columns), rows = static_cast<int64_t>(x.size()) / columns;
  std::vector<std::byte> out(static_cast<size_t>(rows * stride));
  for (int64_t r = 0; r < rows; ++r) encode_row(type, x.data() + r * columns, out.data() + r * stride, columns);
  return out;
}

std::vector<float> round_trip(DType type, const std::vector<float>& x) {
  std::vector<float> out(x.size());
  const auto raw = encode_all(type, x, static_cast<int64_t>(x.size()));
  decode_row(type, raw.data(), out.data(), static_cast<int64_t>(x.size()));
  return out;
}

double rms_error(const float* a, const float* b, size_t count) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum / static_cast<double>(count));
}

std::vector<float> normal(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> x(count);
  for (float& v : x) v = distribution(random);
  return x;
}

TEST(Encode, PlainBlocksHaveTheBytesOfTheReference) {
  const QuantsFixture fixture;
  for (DType type :
       {DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::mxfp4})
    EXPECT_EQ(encode_all(type, fixture.source(), QuantsFixture::columns), fixture.raw(type)) << name(type);
}

TEST(Encode, ErrorIsNoWorseThanTheReference) {
  const QuantsFixture fixture;
  const auto source = fixture.source();
  for (DType type : quantised) {
    const auto raw = encode_all(type, source, QuantsFixture::columns);
    const auto want = fixture.decoded(type);
    std::vector<float> got(QuantsFixture::columns);
    for (size_t r = 0; r < QuantsFixture::rows; ++r) {
      const size_t at = r * QuantsFixture::columns;
      decode_row(type, raw.data() + r * raw.size() / QuantsFixture::rows, got.data(), QuantsFixture::columns);
      const double ours = rms_error(got.data(), source.data() + at, got.size());
      const double theirs = rms_error(want.data() + at, source.data() + at, got.size());
      EXPECT_LE(ours, theirs * 1.01) << name(type) << " row " << r;
    }
  }
}

TEST(Encode, F32AndF64Keep) {
  const auto x = normal(77, 3);
  EXPECT_EQ(round_trip(DType::f32, x), x);
  EXPECT_EQ(round_trip(DType::f64, x), x);
}

TEST(Encode, PlainFloatsTakeNanAndInfinity) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (DType type : {DType::f16, DType::bf16, DType::f64}) {
    const auto y = round_trip(type, {std::nanf(""), infinity, -infinity, -0.f});
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_EQ(y[1], infinity);
    EXPECT_EQ(y[2], -infinity);
    EXPECT_TRUE(y[3] == 0 && std::signbit(y[3]));
  }
}

// On normal data the error of b bits is near a constant of the type; a slip in packing would multiply it.
TEST(Encode, ErrorOnNormalData) {
  const auto x = normal(1 << 16, 11);
  const struct {
    DType type;
    double bound;
  } cases[] = {{DType::q8_0, .0065}, {DType::q4_0, .092},  {DType::q4_1, .080},  {DType::q5_0, .047},
               {DType::q5_1, .039},  {DType::q2_k, .32},   {DType::q3_k, .17},   {DType::q4_k, .075},
               {DType::q5_k, .038},  {DType::q6_k, .0195}, {DType::iq4_nl, .08}, {DType::iq4_xs, .08},
               {DType::mxfp4, .125}};
  for (const auto& c : cases) {
    const auto y = round_trip(c.type, x);
    const double error = rms_error(x.data(), y.data(), x.size());
    EXPECT_LT(error, c.bound) << name(c.type);
    EXPECT_GT(error, c.bound / 2) << name(c.type) << ": the bound is slack";
  }
}

TEST(Encode, ScaleInvariant) {  // a power of two changes the scales and nothing else
  const auto x = normal(512, 5);
  for (DType type : quantised)
    for (float factor : {0x1p-3f, 0x1p3f}) {
      auto scaled = x;
      for (float& v : scaled) v *= factor;
      auto want = round_trip(type, x);
      const auto got = round_trip(type, scaled);
      for (float& v : want) v *= factor;
      EXPECT_EQ(got, want) << name(type);
    }
}

TEST(Encode, ConstantRows) {
  for (DType type : quantised)
    for (float value : {0.f, -0.f, 1.f, -3.f, 1e-2f}) {
      const std::vector<float> x(256, value);
      const auto y = round_trip(type, x);
      for (float v : y) ASSERT_NEAR(v, value, std::fabs(value) * (type == DType::mxfp4 ? 0.26 : 0.035)) << name(type);
    }
}

// Whatever the size of the numbers: finite scales and a bounded error, or a refusal.
TEST(Encode, AnyFiniteInputIsEncodedOrRefused) {
  std::mt19937 random(23);
  for (DType type : quantised) {
    int refused = 0;
    for (int trial = 0; trial < 400; ++trial) {
      auto x = normal(256, static_cast<unsigned>(random()));
      const int exponent = static_cast<int>(random() % 270) - 145;
      const int spread = 1 + static_cast<int>(random() % 20);
      for (float& v : x)
        v = std::ldexp(v, exponent + static_cast<int>(random() % static_cast<unsigned>(spread)) - spread);
      if (trial % 3 == 0)
        for (float& v : x) v = trial % 2 == 0 ? std::fabs(v) : -std::fabs(v);
      float largest = 0;
      for (float v : x) largest = std::max(largest, std::fabs(v));
      ASSERT_TRUE(std::isfinite(largest));
      try {
        const auto raw = encode_all(type, x, 256);
        EXPECT_EQ(find_nonfinite_scale(type, raw.data(), 256 / info(type).block), std::nullopt) << name(type);
        std::vector<float> y(256);
        decode_row(type, raw.data(), y.data(), 256);
        for (size_t i = 0; i < y.size(); ++i)
          ASSERT_LE(std::fabs(y[i] - x[i]), largest * 0.5f + 0x1p-14f) << name(type) << " " << trial;
      } catch (const Error& e) {
        EXPECT_EQ(e.exit(), Exit::input);
        EXPECT_GT(largest, 65504.f) << name(type);  // nothing that half precision itself could hold is refused
        ++refused;
      }
    }
    EXPECT_EQ(refused > 0, type != DType::mxfp4) << name(type);  // an E8M0 scale reaches everything
  }
}

TEST(Encode, RefusesNanInfinityAndBrokenRows) {
  for (DType type : quantised) {
    std::vector<std::byte> out(static_cast<size_t>(row_bytes(type, 256)));
    for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> x(256, 1.f);
      x[200] = bad;
      EXPECT_THROW(encode_row(type, x.data(), out.data(), 256), Error) << name(type);
    }
    const std::vector<float> x(256, 1.f);
    EXPECT_THROW(encode_row(type, x.data(), out.data(), 100), Error) << name(type);
    EXPECT_THROW(encode_row(type, x.data(), out.data(), -256), Error) << name(type);
    encode_row(type, nullptr, nullptr, 0);
  }
}

TEST(Encode, CanEncodeTellsTheTruth) {
  const std::vector<float> x(256, 1.f);
  std::vector<std::byte> out(256 * 8);
  for (int t = 0; t < dtype_count; ++t) {
    const auto type = static_cast<DType>(t);
    if (can_encode(type))
      encode_row(type, x.data(), out.data(), 256);
    else
      EXPECT_THROW(encode_row(type, x.data(), out.data(), 256), Error) << name(type);
  }
  for (DType type : quantised) EXPECT_TRUE(can_encode(type)) << name(type);
  EXPECT_FALSE(can_encode(DType::i32));
  EXPECT_FALSE(can_encode(DType::q8_x));
}

}  // namespace
}  // namespace consonant
