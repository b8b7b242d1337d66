// SPDX-License-Identifier: Apache-2.0
#include "ops/argmax/argmax.hpp"

#include <bit>
#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;
using testing::ElementsAre;

std::vector<int32_t> best(DeviceKind device, const Shape& shape, const std::vector<float>& numbers) {
  std::vector<int32_t> columns;
  for (const float bits : compute(device, [&](CaseBuilder& b) { return argmax(b.numbers("x", shape, numbers)); }))
    columns.push_back(std::bit_cast<int32_t>(bits));
  return columns;
}

TEST(Argmax, IsTheFirstOfTheGreatest) {
  for (const DeviceKind device : both_devices) {
    EXPECT_THAT(best(device, {2, 3}, {1, 5, 5, -3, -4, -3}), ElementsAre(1, 0));
    EXPECT_THAT(best(device, {2, 1, 2}, {0, 1, -0.0f, 0}), ElementsAre(1, 0));
    EXPECT_THAT(best(device, {3, 3}, {NAN, -INFINITY, 2, NAN, NAN, NAN, NAN, -INFINITY, -INFINITY}),
                ElementsAre(2, 0, 1));
  }
}

TEST(Argmax, RefusesARowOfNothing) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) { return argmax(b.values("x", per_token(3, 0))); }),
              HasSubstr("argmax: wants x [..., row, n] f32, n from 1"));
}

}  // namespace
}  // namespace consonant
