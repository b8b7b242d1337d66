// SPDX-License-Identifier: Apache-2.0
#include "ops/silu/silu.hpp"

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Silu, IsWhatItsEquationSays) {
  expect_near(
      [](CaseBuilder& b) {
        return silu(b.numbers("x", {1, 5}, {0, 1, -1, 20, -20}));
      },
      {0, 0.7310586f, -0.26894143f, 20, -4.1223072e-8f});
}

TEST(Silu, IsSilentFarBelowZeroAndTheIdentityFarAbove) {
  const float most = std::numeric_limits<float>::max();
  for (const DeviceKind device : both_devices)
    for (const float x : {104.0f, 1e4f, 1e30f, 1e38f, most}) {
      const std::vector<float> y = compute(device, [x](CaseBuilder& b) {
        return silu(b.numbers("x", {1, 2}, {x, -x}));
      });
      EXPECT_EQ(y[0], x) << name(device);
      EXPECT_NEAR(y[1], 0, 1e-30f) << name(device) << " of " << -x;
    }
}

TEST(Silu, ShowsWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, [=](CaseBuilder& b) {
      return silu(b.numbers("x", {1, 4}, {nan, inf, -nan, 1}));
    });
    EXPECT_TRUE(std::isnan(y[0])) << name(device);
    EXPECT_EQ(y[1], inf) << name(device);
    EXPECT_TRUE(std::isnan(y[2])) << name(device);
    EXPECT_TRUE(std::isfinite(y[3])) << name(device);
  }
}

TEST(Silu, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) { return silu(b.values("x", {1, 1})); });
}

}  // namespace
}  // namespace consonant
