// SPDX-License-Identifier: Apache-2.0
#include "ops/beside/beside.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Beside, RepeatsASingleRow) {
  expect_exactly(
      [](CaseBuilder& b) {
        return beside({b.numbers("a", {2, 1}, {1, 2}), b.numbers("b", {1, 2}, {8, 9}), b.numbers("c", {2, 1}, {3, 4})});
      },
      {1, 8, 9, 3, 2, 8, 9, 4});
}

TEST(Beside, RefusesPartsOfOtherRows) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return beside({b.values("a", {2, 1}), b.values("b", {3, 1})});
              }),
              HasSubstr("beside: wants parts [row, n]"));
}

}  // namespace
}  // namespace consonant
