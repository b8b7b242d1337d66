// SPDX-License-Identifier: Apache-2.0
#include "ops/argsort/argsort.hpp"

#include <bit>
#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;
using testing::ElementsAre;

std::vector<int32_t> sorted(DeviceKind device, const std::vector<float>& numbers, Order order) {
  std::vector<int32_t> columns;
  const Shape row = {1, static_cast<int64_t>(numbers.size())};
  for (const float bits : compute(device, [&](CaseBuilder& b) { return argsort(b.numbers("x", row, numbers), order); }))
    columns.push_back(std::bit_cast<int32_t>(bits));
  return columns;
}

TEST(Argsort, GivesTheColumnsInOrder) {
  for (const DeviceKind device : both_devices) {
    EXPECT_THAT(sorted(device, {3, -1, 2}, Order::ascending), ElementsAre(1, 2, 0));
    EXPECT_THAT(sorted(device, {3, -1, 2}, Order::descending), ElementsAre(0, 2, 1));
  }
}

TEST(Argsort, EqualNumbersKeepTheirOrder) {
  for (const DeviceKind device : both_devices) {
    EXPECT_THAT(sorted(device, {0, 1, -0.0f, 1, 0}, Order::ascending), ElementsAre(0, 2, 4, 1, 3));
    EXPECT_THAT(sorted(device, {-0.0f, 1, 0, 1, -0.0f}, Order::descending), ElementsAre(1, 3, 0, 2, 4));
  }
}

TEST(Argsort, NaNsAreLastInEitherOrder) {
  for (const DeviceKind device : both_devices) {
    EXPECT_THAT(sorted(device, {NAN, INFINITY, -INFINITY, -NAN, 0}, Order::ascending), ElementsAre(2, 4, 1, 0, 3));
    EXPECT_THAT(sorted(device, {NAN, INFINITY, -INFINITY, -NAN, 0}, Order::descending), ElementsAre(1, 4, 2, 0, 3));
  }
}

TEST(Argsort, RefusesIntegers) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return argsort(b.integers("x", {2, 3}, 0, 9), Order::ascending);
              }),
              HasSubstr("argsort: wants x [..., n] f32"));
}

}  // namespace
}  // namespace consonant
