// SPDX-License-Identifier: Apache-2.0
#include "ops/log_floor/log_floor.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(LogFloor, RaisesWhatIsSmaller) {
  expect_near(
      [](CaseBuilder& b) {
        return log_floor(b.numbers("x", {1, 4}, {1, 0, -2, 20}), 0.5f);
      },
      {0, -0.6931472f, -0.6931472f, 2.9957323f});
}

}  // namespace
}  // namespace consonant
