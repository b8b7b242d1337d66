// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>

#include "base/error.hpp"
#include "tensor/blocks.hpp"
#include "tensor/convert.hpp"
#include "tensor/host_tensor.hpp"

namespace consonant {
namespace {

template <class Block>
void expect_block(DType type) {
  EXPECT_EQ(info(type).block, Block::size) << name(type);
  EXPECT_EQ(info(type).block_bytes, static_cast<int>(sizeof(Block))) << name(type);
}

TEST(DType, TableMatchesTheBlocks) {
  expect_block<BlockQ8_0>(DType::q8_0);
  expect_block<BlockQ4_0>(DType::q4_0);
  expect_block<BlockQ4_1>(DType::q4_1);
  expect_block<BlockQ5_0>(DType::q5_0);
  expect_block<BlockQ5_1>(DType::q5_1);
  expect_block<BlockQ2_K>(DType::q2_k);
  expect_block<BlockQ3_K>(DType::q3_k);
  expect_block<BlockQ4_K>(DType::q4_k);
  expect_block<BlockQ5_K>(DType::q5_k);
  expect_block<BlockQ6_K>(DType::q6_k);
  expect_block<BlockIQ4_NL>(DType::iq4_nl);
  expect_block<BlockIQ4_XS>(DType::iq4_xs);
  expect_block<BlockMXFP4>(DType::mxfp4);
}

TEST(DType, NamesAreUniqueAndFound) {
  std::set<std::string_view> seen;
  for (int t = 0; t < dtype_count; ++t) {
    const auto type = static_cast<DType>(t);
    EXPECT_TRUE(seen.insert(name(type)).second) << name(type);
    EXPECT_EQ(find_dtype(name(type)), type);
  }
  for (std::string_view no : {"", "Q4_K", "q4", "f32 ", "q8_k"}) EXPECT_EQ(find_dtype(no), std::nullopt) << no;
}

TEST(DType, RowBytes) {
  EXPECT_EQ(row_bytes(DType::f32, 576), 2304);
  EXPECT_EQ(row_bytes(DType::q4_1, 576), 360);
  EXPECT_EQ(row_bytes(DType::q4_k, 256), 144);
  for (int t = 0; t < dtype_count; ++t) EXPECT_EQ(row_bytes(static_cast<DType>(t), 0), 0);
}

TEST(DType, RowBytesRefusesMisuseAndOverflow) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  const auto refused = [](DType type, int64_t columns) {
    try {
      row_bytes(type, columns);
    } catch (const Error& e) {
      return e.exit() == Exit::input;
    }
    return false;
  };
  for (int t = 0; t < dtype_count; ++t) {
    const auto type = static_cast<DType>(t);
    EXPECT_TRUE(refused(type, -1)) << name(type);
    EXPECT_TRUE(refused(type, std::numeric_limits<int64_t>::min())) << name(type);
    EXPECT_EQ(refused(type, 257), is_quantized(type)) << name(type);
    const int64_t large = most / info(type).block * info(type).block;
    EXPECT_EQ(refused(type, large), info(type).block_bytes > info(type).block) << name(type);
  }
}

TEST(HostTensor, ElementCountRefusesNegativeAndOverflow) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({3, 0, 7}), 0);
  EXPECT_EQ(element_count({3, 5, 7}), 105);
  EXPECT_THROW(element_count({3, -1}), Error);
  EXPECT_THROW(element_count({int64_t{1} << 32, int64_t{1} << 32}), Error);
  EXPECT_EQ(to_string(Sizes{576, 1536}), "[576, 1536]");
  EXPECT_EQ(to_string(Sizes{}), "[]");
}

TEST(HostTensor, AllocatesZeroedRowsAndDecodesThem) {
  HostTensor tensor = HostTensor::allocate(DType::q4_0, {2, 3, 64});
  EXPECT_EQ(tensor.rows(), 6);
  EXPECT_EQ(tensor.columns(), 64);
  ASSERT_EQ(tensor.bytes.size(), 6u * 36);
  for (std::byte b : tensor.bytes) ASSERT_EQ(b, std::byte{0});
  const std::vector<float> row(64, -4.f);  // at the lowest level: d = 0.5, q = 0
  encode_row(DType::q4_0, row.data(), tensor.mutable_bytes().data() + 4 * 36, 64);
  const auto floats = tensor.to_floats();
  ASSERT_EQ(floats.size(), 384u);
  for (size_t i = 0; i < floats.size(); ++i) ASSERT_EQ(floats[i], i / 64 == 4 ? -4.f : 0.f) << i;
}

TEST(HostTensor, EmptyAndScalar) {
  EXPECT_EQ(HostTensor::allocate(DType::f32, {}).bytes.size(), 4u);
  EXPECT_EQ(HostTensor::allocate(DType::f32, {}).to_floats(), std::vector<float>{0.f});
  EXPECT_TRUE(HostTensor::allocate(DType::f32, {0, 5}).to_floats().empty());
  EXPECT_TRUE(HostTensor::allocate(DType::f32, {5, 0}).to_floats().empty());
  EXPECT_THROW(HostTensor::allocate(DType::q4_0, {2, 33}), Error);
  EXPECT_THROW(HostTensor::allocate(DType::f32, {-2, 33}), Error);
}

}  // namespace
}  // namespace consonant
