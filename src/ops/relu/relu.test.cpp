// SPDX-License-Identifier: Apache-2.0
#include "ops/relu/relu.hpp"

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Relu, KeepsWhatIsAboveZero) {
  expect_exactly(
      [](CaseBuilder& b) {
        return relu(b.numbers("x", {2, 3}, {0, 1, -1, 3e38f, -20, 1e-40f}));
      },
      {0, 1, 0, 3e38f, 0, 1e-40f});
}

TEST(Relu, ShowsWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, [=](CaseBuilder& b) {
      return relu(b.numbers("x", {1, 3}, {nan, inf, -inf}));
    });
    EXPECT_TRUE(std::isnan(y[0])) << name(device);
    EXPECT_EQ(y[1], inf) << name(device);
    EXPECT_EQ(y[2], 0) << name(device);
  }
}

TEST(Relu, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) { return relu(b.values("x", {1, 1})); });
}

}  // namespace
}  // namespace consonant
