// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_set/linear_set.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

// x is (3, 4), whose root mean square is 3.5355339.
LinearSet two(CaseBuilder& b, const Shape& second = {2, 2}) {
  LinearSet set;
  set.x = b.numbers("x", {1, 2}, {3, 4});
  set.weights = {b.numbers("w0", {2, 2}, {1, 0, 0, 1}), b.values("w1", second)};
  return set;
}

TEST(LinearSet, IsTheProductAndItsBias) {
  expect_near(
      [](CaseBuilder& b) {
        LinearSet set = two(b);
        set.biases = {b.numbers("bias", {2}, {10, 20}), {}};
        return linear_set(set)[0];
      },
      {13, 24});
}

TEST(LinearSet, NormalisesItsInput) {
  expect_near(
      [](CaseBuilder& b) {
        LinearSet set = two(b);
        set.norm = b.numbers("norm", {2}, {1, 2});
        return linear_set(set)[0];
      },
      {0.8485281f, 2.2627417f});
}

TEST(LinearSet, GatesOneProductByTheOther) {
  expect_near(
      [](CaseBuilder& b) {
        LinearSet set = two(b);
        set.norm = b.numbers("norm", {2}, {1, 2});
        set.weights[1] = b.numbers("w2", {2, 2}, {2, 0, 0, 1});
        return linear_gated(set, Activation::silu);
      },
      {1.0083719f, 4.6374091f});
}

TEST(LinearSet, RefusesShapesThatDontFit) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return linear_set(two(b, {2, 3}))[0];
              }),
              HasSubstr("w [outputs, inputs]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return linear_gated(two(b, {3, 2}), Activation::silu);
              }),
              HasSubstr("two equal w"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                LinearSet set = two(b);
                set.norm = b.vector("norm", 3);
                return linear_set(set)[0];
              }),
              HasSubstr("norm [inputs]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                LinearSet set = two(b);
                set.biases = {b.vector("bias", 3)};
                return linear_set(set)[0];
              }),
              HasSubstr("bias [outputs]"));
}

}  // namespace
}  // namespace consonant
