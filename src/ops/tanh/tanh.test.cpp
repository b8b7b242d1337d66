// SPDX-License-Identifier: Apache-2.0
#include "ops/tanh/tanh.hpp"

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Tanh, IsWhatItsEquationSays) {
  expect_near(
      [](CaseBuilder& b) {
        return tanh(b.numbers("x", {1, 5}, {0, 1, -1, 3, -20}));
      },
      {0, 0.76159416f, -0.76159416f, 0.9950548f, -1});
}

TEST(Tanh, ShowsWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, [=](CaseBuilder& b) {
      return tanh(b.numbers("x", {1, 3}, {nan, -inf, 1}));
    });
    EXPECT_TRUE(std::isnan(y[0])) << consonant::name(device);
    EXPECT_EQ(y[1], -1) << consonant::name(device);
    EXPECT_TRUE(std::isfinite(y[2])) << consonant::name(device);
  }
}

TEST(Tanh, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) { return tanh(b.values("x", {1, 1})); });
}

}  // namespace
}  // namespace consonant
