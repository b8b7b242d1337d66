// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/scale.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Scale, MultipliesEachNumber) {
  expect_exactly(
      [](CaseBuilder& b) {
        return scale(b.numbers("x", {2, 2}, {1, -2, 0, 0.5f}), -4);
      },
      {-4, 8, -0.0f, -2});
}

}  // namespace
}  // namespace consonant
