// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <gtest/gtest.h>

namespace consonant {
namespace {

TEST(Deadline, IsFarAwayHoweverManySecondsAreAskedFor) {
  for (const double seconds : {1e9, 1e10, 1e300, std::numeric_limits<double>::infinity()}) {
    const Deadline deadline = Deadline::after(seconds);
    EXPECT_TRUE(deadline.is_set());
    EXPECT_FALSE(deadline.passed()) << seconds;
    EXPECT_GT(deadline.left(), 9e8) << seconds;
  }
  EXPECT_TRUE(Deadline::after(0).passed());
}

}  // namespace
}  // namespace consonant
