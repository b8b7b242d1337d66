// SPDX-License-Identifier: Apache-2.0
#include "ops/cumsum/cumsum.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Cumsum, AddsUpEachRow) {
  expect_exactly(
      [](CaseBuilder& b) {
        return cumsum(b.numbers("x", {2, 3}, {1, -2, 4, 0.5f, 0.25f, 8}));
      },
      {1, -1, 3, 0.5f, 0.75f, 8.75f});
}

TEST(Cumsum, LosesNothingOfWholeNumbers) {
  std::vector<float> want;
  for (int i = 1; i <= 5000; ++i) want.push_back(static_cast<float>(3 * i));
  expect_exactly([](CaseBuilder& b) { return cumsum(b.numbers("x", {1, 5000}, {3})); }, want);
}

TEST(Cumsum, RefusesAScalar) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) { return cumsum(b.values("x", Shape{})); }),
              HasSubstr("cumsum: wants x [..., n]"));
}

}  // namespace
}  // namespace consonant
