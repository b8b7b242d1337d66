// SPDX-License-Identifier: Apache-2.0
#include "tensor/packed.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "base/error.hpp"
#include "tensor/convert.hpp"

namespace consonant {
namespace {

constexpr DType weight_types[] = {DType::f32,  DType::f16,    DType::bf16,   DType::q8_0, DType::q4_0, DType::q4_1,
                                  DType::q5_0, DType::q5_1,   DType::q2_k,   DType::q3_k, DType::q4_k, DType::q5_k,
                                  DType::q6_k, DType::iq4_nl, DType::iq4_xs, DType::mxfp4};

std::vector<std::byte> noise(size_t bytes, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> out(bytes);
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  return out;
}

class Packed : public testing::TestWithParam<DType> {};

// Any bits, scales of infinity and NaN among them: a row must come back with the same ones. (NaNs need only be NaNs.)
TEST_P(Packed, RowsComeBackBitForBit) {
  const DType type = GetParam();
  const int64_t block = std::max(info(type).block, 32);
  for (int64_t rows : {1, 7, 8, 19})
    for (int64_t k : {block, 3 * block}) {
      const PackedShape shape = packed_shape(type, rows, k);
      const int64_t stride = row_bytes(type, k);
      const auto plain = noise(static_cast<size_t>(rows * stride) + 1, static_cast<uint32_t>(rows * k));
      const std::byte* odd = plain.data() + 1;  // a file promises no alignment
      std::vector<std::byte> packed(static_cast<size_t>(shape.bytes()), std::byte{0xEE});
      for (int64_t g = shape.groups(); g-- > 0;) pack_groups(shape, odd, packed.data(), g, g + 1);
      std::vector<float> want(static_cast<size_t>(k)), got(static_cast<size_t>(k));
      for (int64_t r = 0; r < rows; ++r) {
        decode_row(type, odd + r * stride, want.data(), k);
        decode_packed_row(shape, packed.data(), r, got.data());
        for (size_t i = 0; i < want.size(); ++i) {
          if (want[i] != want[i] && got[i] != got[i]) continue;
          ASSERT_EQ(std::memcmp(&want[i], &got[i], sizeof(float)), 0)
              << name(type) << " row " << r << " of " << rows << ", element " << i << " of " << k << ": " << got[i]
              << " for " << want[i];
        }
      }
    }
}

// A matrix of a stack has the very bytes that it has alone.
TEST_P(Packed, MatricesOfAStackLieOneAfterAnother) {
  const DType type = GetParam();
  const int64_t k = 2 * std::max(info(type).block, 32), matrices = 3;
  for (int64_t rows : {1, 8, 13}) {
    const PackedShape alone = packed_shape(type, rows, k);
    const PackedShape stack = packed_shape(type, std::vector<int64_t>{matrices, rows, k});
    ASSERT_EQ(stack.bytes(), matrices * alone.bytes());
    EXPECT_EQ(stack.first_row(stack.groups()), matrices * rows);
    const int64_t bytes = rows * row_bytes(type, k);
    const auto plain = noise(static_cast<size_t>(matrices * bytes), 5);
    std::vector<std::byte> got(static_cast<size_t>(stack.bytes()), std::byte{0xEE});
    std::vector<std::byte> want(static_cast<size_t>(alone.bytes()), std::byte{0xEE});
    for (int64_t g = stack.groups(); g-- > 0;) pack_groups(stack, plain.data(), got.data(), g, g + 1);
    for (int64_t m = 0; m < matrices; ++m) {
      pack_groups(alone, plain.data() + m * bytes, want.data(), 0, alone.groups());
      EXPECT_EQ(std::memcmp(want.data(), got.data() + m * alone.bytes(), want.size()), 0) << name(type) << " " << m;
    }
    std::vector<float> row(static_cast<size_t>(k)), same(row);
    decode_packed_row(stack, got.data(), 2 * rows, row.data());
    decode_packed_row(alone, got.data() + 2 * alone.bytes(), 0, same.data());
    EXPECT_EQ(std::memcmp(row.data(), same.data(), row.size() * sizeof(float)), 0);
  }
}

TEST_P(Packed, TakesNoMoreThanTheFileAndThreePercent) {
  const DType type = GetParam();
  const PackedShape shape = packed_shape(type, 64, 1024);
  EXPECT_EQ(shape.group_bytes % 32, 0);
  EXPECT_LE(static_cast<double>(shape.bytes()), 1.03 * static_cast<double>(64 * row_bytes(type, 1024)));
}

TEST_P(Packed, RefusesBrokenBlocks) {
  const int block = info(GetParam()).block;
  if (block == 1) GTEST_SKIP() << "plain types have no blocks";
  EXPECT_THROW(packed_shape(GetParam(), 8, block + 16), Error);
}

INSTANTIATE_TEST_SUITE_P(Types, Packed, testing::ValuesIn(weight_types),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST(PackedShape, RefusesTypesThatAreNoWeights) {
  EXPECT_THROW(packed_shape(DType::i32, 8, 32), Error);
  EXPECT_THROW(packed_shape(DType::q8_x, 8, 32), Error);
  EXPECT_THROW(packed_shape(DType::f32, int64_t{1} << 40, int64_t{1} << 40), Error);
}

}  // namespace
}  // namespace consonant
