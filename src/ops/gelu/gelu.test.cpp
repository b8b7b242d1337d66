// SPDX-License-Identifier: Apache-2.0
#include "ops/gelu/gelu.hpp"

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Gelu, IsWhatItsEquationSays) {
  expect_near(
      [](CaseBuilder& b) {
        return gelu(b.numbers("x", {1, 5}, {0, 1, -1, 3, -20}));
      },
      {0, 0.841192f, -0.158808f, 2.9963627f, 0});
}

TEST(Gelu, IsSilentFarBelowZeroAndTheIdentityFarAbove) {
  const float most = std::numeric_limits<float>::max();
  for (const DeviceKind device : both_devices)
    for (const float x : {104.0f, 1e4f, 1e30f, 1e38f, most}) {
      const std::vector<float> y = compute(device, [x](CaseBuilder& b) {
        return gelu(b.numbers("x", {1, 2}, {x, -x}));
      });
      EXPECT_EQ(y[0], x) << name(device);
      EXPECT_NEAR(y[1], 0, 1e-30f) << name(device) << " of " << -x;
    }
}

TEST(Gelu, ShowsWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DeviceKind device : both_devices) {
    const std::vector<float> y = compute(device, [=](CaseBuilder& b) {
      return gelu(b.numbers("x", {1, 4}, {nan, inf, -nan, 1}));
    });
    EXPECT_TRUE(std::isnan(y[0])) << name(device);
    EXPECT_EQ(y[1], inf) << name(device);
    EXPECT_TRUE(std::isnan(y[2])) << name(device);
    EXPECT_TRUE(std::isfinite(y[3])) << name(device);
  }
}

TEST(Gelu, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) { return gelu(b.values("x", {1, 1})); });
}

}  // namespace
}  // namespace consonant
