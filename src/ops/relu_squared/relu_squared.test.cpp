// SPDX-License-Identifier: Apache-2.0
#include "ops/relu_squared/relu_squared.hpp"

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(ReluSquared, SquaresWhatIsAboveZero) {
  expect_exactly(
      [](CaseBuilder& b) {
        return relu_squared(b.numbers("x", {2, 3}, {0, 3, -1, 1e19f, -20, 0.5f}));
      },
      {0, 9, 0, 1e38f, 0, 0.25f});
}

TEST(ReluSquared, ShowsWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, [=](CaseBuilder& b) {
      return relu_squared(b.numbers("x", {1, 3}, {nan, inf, -inf}));
    });
    EXPECT_TRUE(std::isnan(y[0])) << name(device);
    EXPECT_EQ(y[1], inf) << name(device);
    EXPECT_EQ(y[2], 0) << name(device);
  }
}

TEST(ReluSquared, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) { return relu_squared(b.values("x", {1, 1})); });
}

}  // namespace
}  // namespace consonant
