// SPDX-License-Identifier: Apache-2.0
#include "ops/sigmoid/sigmoid.hpp"

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Sigmoid, IsWhatItsEquationSays) {
  expect_near(
      [](CaseBuilder& b) {
        return sigmoid(b.numbers("x", {1, 5}, {0, 1, -1, 3, -20}));
      },
      {0.5f, 0.73105858f, 0.26894142f, 0.95257413f, 2.0611536e-9f});
}

TEST(Sigmoid, ReachesItsLimits) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, [=](CaseBuilder& b) {
      return sigmoid(b.numbers("x", {1, 5}, {nan, inf, -inf, 3e38f, -3e38f}));
    });
    EXPECT_TRUE(std::isnan(y[0])) << name(device);
    EXPECT_EQ(y[1], 1) << name(device);
    EXPECT_EQ(y[2], 0) << name(device);
    EXPECT_EQ(y[3], 1) << name(device);
    EXPECT_EQ(y[4], 0) << name(device);
  }
}

TEST(Sigmoid, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) { return sigmoid(b.values("x", {1, 1})); });
}

}  // namespace
}  // namespace consonant
