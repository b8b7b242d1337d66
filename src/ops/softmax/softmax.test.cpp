// SPDX-License-Identifier: Apache-2.0
#include "ops/softmax/softmax.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Softmax, IsTheExponentialsShareOfTheirSum) {
  // e^0 : e^ln 2 : e^ln 5 = 1 : 2 : 5
  expect_near(
      [](CaseBuilder& b) {
        return softmax(b.numbers("x", {2, 3}, {0, std::log(2.0f), std::log(5.0f)}));
      },
      {0.125f, 0.25f, 0.625f, 0.125f, 0.25f, 0.625f});
}

TEST(Softmax, TakesMinusInfinityForNever) {
  expect_exactly(
      [](CaseBuilder& b) {
        return softmax(b.numbers("x", {3, 2}, {-INFINITY, 4, -INFINITY, -INFINITY, 1e38f, 1e38f}));
      },
      {0, 1, 0, 0, 0.5f, 0.5f});
}

TEST(Softmax, ARowWithANaNIsNaN) {
  for (const DeviceKind device : both_devices)
    for (const float y : compute(device, [](CaseBuilder& b) {
           return softmax(b.numbers("x", {3, 2}, {NAN, 1, -INFINITY, NAN, INFINITY, 1}));
         }))
      EXPECT_TRUE(std::isnan(y)) << name(device);
}

TEST(Softmax, RefusesAScalar) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) { return softmax(b.values("x", Shape{})); }),
              HasSubstr("softmax: wants x [..., n]"));
}

}  // namespace
}  // namespace consonant
