// SPDX-License-Identifier: Apache-2.0
#include "ops/clamp/clamp.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Clamp, StopsAtItsEnds) {
  expect_exactly(
      [](CaseBuilder& b) {
        return clamp(b.numbers("x", {1, 5}, {-3, -1, 0.5f, 1, INFINITY}), -1, 1);
      },
      {-1, -1, 0.5f, 1, 1});
}

TEST(Clamp, ShowsWhatIsNoNumber) {
  for (const DeviceKind device : both_devices)
    EXPECT_TRUE(std::isnan(compute(device, [](CaseBuilder& b) {
                             return clamp(b.numbers("x", {1, 1}, {NAN}), -1, 1);
                           }).front()));
}

}  // namespace
}  // namespace consonant
