// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "tensor/blocks.hpp"
#include "tensor/convert.hpp"
#include "tensor/quants_fixture.hpp"

namespace consonant {
namespace {

using test::QuantsFixture;

std::vector<float> decode_all(DType type, const std::byte* from) {
  std::vector<float> out(QuantsFixture::rows * QuantsFixture::columns);
  const int64_t stride = row_bytes(type, QuantsFixture::columns);
  for (int r = 0; r < QuantsFixture::rows; ++r)
    decode_row(type, from + r * stride, out.data() + r * QuantsFixture::columns, QuantsFixture::columns);
  return out;
}

class DecodeFixture : public testing::TestWithParam<DType> {};

TEST_P(DecodeFixture, GivesTheBitsOfTheReference) {
  const QuantsFixture fixture;
  const auto raw = fixture.raw(GetParam());
  const auto want = fixture.decoded(GetParam());
  ASSERT_EQ(static_cast<int64_t>(raw.size()), QuantsFixture::rows * row_bytes(GetParam(), QuantsFixture::columns));
  const auto got = decode_all(GetParam(), raw.data());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "row " << i / QuantsFixture::columns << " column " << i % QuantsFixture::columns << ": " << got[i]
        << ", want " << want[i];
}

TEST_P(DecodeFixture, ReadsRowsAtOddAddresses) {
  const QuantsFixture fixture;
  const auto raw = fixture.raw(GetParam());
  const auto want = decode_all(GetParam(), raw.data());
  for (size_t shift : {1u, 3u}) {
    std::vector<std::byte> moved(raw.size() + shift);
    std::memcpy(moved.data() + shift, raw.data(), raw.size());
    const auto got = decode_all(GetParam(), moved.data() + shift);
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0) << shift;
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, DecodeFixture,
                         testing::Values(DType::f16, DType::bf16, DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0,
                                         DType::q5_1, DType::q2_k, DType::q3_k, DType::q4_k, DType::q5_k, DType::q6_k,
                                         DType::iq4_nl, DType::iq4_xs, DType::mxfp4),
                         [](const auto& param) { return std::string(name(param.param)); });

template <class T>
void expect_decoded(DType type, std::initializer_list<T> values, std::initializer_list<float> want) {
  std::vector<std::byte> raw(values.size() * sizeof(T) + 1);
  std::byte* to = raw.data() + 1;  // odd on purpose
  for (const T& value : values) to = static_cast<std::byte*>(std::memcpy(to, &value, sizeof value)) + sizeof value;
  std::vector<float> got(values.size());
  decode_row(type, raw.data() + 1, got.data(), static_cast<int64_t>(values.size()));
  EXPECT_EQ(got, std::vector<float>(want)) << name(type);
}

TEST(Decode, PlainTypes) {
  expect_decoded<float>(DType::f32, {0.1f, -3e38f}, {0.1f, -3e38f});
  expect_decoded<double>(DType::f64, {0.1, -1e300}, {0.1f, -std::numeric_limits<float>::infinity()});
  expect_decoded<int8_t>(DType::i8, {-128, 127}, {-128, 127});
  expect_decoded<uint8_t>(DType::u8, {0, 255}, {0, 255});
  expect_decoded<int16_t>(DType::i16, {-32768, 32767}, {-32768, 32767});
  expect_decoded<int32_t>(DType::i32, {-2147483647 - 1, 16777217}, {-2147483648.f, 16777216});
  expect_decoded<int64_t>(DType::i64, {-5, int64_t{1} << 40}, {-5, 0x1p40f});
  expect_decoded<uint8_t>(DType::boolean, {0, 1, 7}, {0, 1, 1});
}

TEST(Decode, ActivationsArePlanar) {
  constexpr int columns = 64;
  std::vector<std::byte> row(1 + static_cast<size_t>(row_bytes(DType::q8_x, columns)));
  std::byte* at = row.data() + 1;
  for (int i = 0; i < columns; ++i) at[i] = static_cast<std::byte>(i - 32);
  const float scales[2] = {0.5f, 3.f};
  std::memcpy(at + columns, scales, sizeof scales);
  std::vector<float> got(columns);
  decode_row(DType::q8_x, at, got.data(), columns);
  for (int i = 0; i < columns; ++i) ASSERT_EQ(got[static_cast<size_t>(i)], scales[i / 32] * static_cast<float>(i - 32));
}

TEST(Decode, NothingIsARow) {
  for (int t = 0; t < dtype_count; ++t) decode_row(static_cast<DType>(t), nullptr, nullptr, 0);
}

TEST(Decode, RefusesBrokenBlocks) {
  std::vector<std::byte> raw(1000);
  std::vector<float> out(512);
  EXPECT_THROW(decode_row(DType::q4_0, raw.data(), out.data(), 31), Error);
  EXPECT_THROW(decode_row(DType::q6_k, raw.data(), out.data(), 128), Error);
  EXPECT_THROW(decode_row(DType::f32, raw.data(), out.data(), -1), Error);
}

TEST(Decode, Mxfp4CoversItsExponents) {
  BlockMXFP4 block{};
  for (int i = 0; i < 16; ++i) block.q[i] = static_cast<uint8_t>(i);  // element i is code i, element 16 + i code 0
  const float fp4[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, 0, -.5f, -1, -1.5f, -2, -3, -4, -6};
  for (int e = 0; e < 255; ++e) {
    block.e = static_cast<uint8_t>(e);
    float got[32];
    decode_row(DType::mxfp4, reinterpret_cast<const std::byte*>(&block), got, 32);
    for (int i = 0; i < 16; ++i)
      ASSERT_EQ(got[i], static_cast<float>(std::ldexp(static_cast<double>(fp4[i]), e - 127))) << e << " " << i;
  }
}

// A block whose every byte is 0xFF has NaN in each half-precision scale (and in an E8M0 one).
TEST(Decode, NanScalesGiveNan) {
  for (DType type : {DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q5_1, DType::q2_k, DType::q3_k,
                     DType::q4_k, DType::q5_k, DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4}) {
    const int64_t columns = info(type).block;
    const std::vector<std::byte> raw(static_cast<size_t>(row_bytes(type, columns)), std::byte{0xFF});
    std::vector<float> out(static_cast<size_t>(columns));
    decode_row(type, raw.data(), out.data(), columns);
    for (float x : out) ASSERT_TRUE(std::isnan(x)) << name(type);
  }
}

}  // namespace
}  // namespace consonant
