// SPDX-License-Identifier: Apache-2.0
#include "graph/views.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace consonant {
namespace {

const Output& output_of(const Tensor& x) { return x.node->outputs[0]; }

TEST(Views, PutGroupsOneAfterAnother) {
  const Tensor x = input("x", DType::f32, {6, 10});
  const Tensor y = merge_rows(split_heads(x, 5));
  EXPECT_EQ(y.shape(), (Shape{30, 2}));
  EXPECT_EQ(output_of(y).strides[0], 2);
  EXPECT_THROW(merge_rows(split_heads(split(x, {4, 6})[1], 3)), Error);  // numbers lie between
}

TEST(Views, TakeNeighbouringRows) {
  const Tensor y = part_of_rows(input("x", DType::f32, {6, 10}), 2, 3);
  EXPECT_EQ(y.shape(), (Shape{3, 10}));
  EXPECT_EQ(output_of(y).offset, 20);
  EXPECT_THROW(part_of_rows(input("x", DType::f32, {6, 10}), 4, 3), Error);
}

TEST(Views, SeeARowOrAColumnAsAVector) {
  EXPECT_EQ(as_vector(input("x", DType::f32, {1, 10})).shape(), Shape{10});
  EXPECT_EQ(as_vector(input("x", DType::f32, {10, 1})).shape(), Shape{10});
  EXPECT_THROW(as_vector(input("x", DType::f32, {2, 10})), Error);
}

}  // namespace
}  // namespace consonant
