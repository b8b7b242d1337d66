// SPDX-License-Identifier: Apache-2.0
#include "ops/depthwise/depthwise.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Depthwise, LooksAtEachChannelAlone) {
  expect_exactly(
      [](CaseBuilder& b) {
        return depthwise(b.numbers("x", {3, 2}, {1, 2, 3, 4, 5, 6}), b.numbers("w", {4}, {1, 10, 100, 1000}),
                         b.numbers("b", {2}, {0.5f, -1}));
      },
      {301.5f, 4019, 503.5f, 6039});
}

TEST(Depthwise, WantsAsManyRowsAsTaps) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return depthwise(b.values("x", {2, 2}), b.vector("w", 6), b.vector("b", 2));
              }),
              HasSubstr("depthwise: wants x [row, n] of a fixed size"));
}

}  // namespace
}  // namespace consonant
