// SPDX-License-Identifier: Apache-2.0
#include "ops/pad_rows/pad_rows.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(PadRows, PutsZerosAround) {
  expect_exactly(
      [](CaseBuilder& b) {
        return pad_rows(b.numbers("x", {2, 2}, {1, 2, 3, 4}), 1, 2);
      },
      {0, 0, 1, 2, 3, 4, 0, 0, 0, 0});
}

TEST(PadRows, MirrorsOrRepeatsTheEdge) {
  const auto padded = [](Edge edge) {
    return [=](CaseBuilder& b) { return pad_rows(b.numbers("x", {3, 1}, {1, 2, 3}), 2, 1, edge); };
  };
  expect_exactly(padded(Edge::mirror), {3, 2, 1, 2, 3, 2});
  expect_exactly(padded(Edge::repeat), {1, 1, 1, 2, 3, 3});
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return pad_rows(b.values("x", {2, 1}), 2, 0, Edge::mirror);
              }),
              HasSubstr("2 rows before and 0 after that it has to fill"));
}

TEST(Conv1d, SumsTheTapsOfAllChannels) {
  // Two channels, kernel 3: w = [x0 of tap 0, x1 of tap 1, x0 of tap 2] with weights 1, 10, 100.
  expect_exactly(
      [](CaseBuilder& b) {
        return conv1d(b.numbers("x", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), b.numbers("w", {1, 6}, {1, 0, 0, 10, 100, 0}),
                      3, 1, 1);
      },
      {20 + 300, 1 + 40 + 500, 3 + 60 + 700, 5 + 80});
}

TEST(Conv1d, SkipsByTheStride) {
  expect_exactly(
      [](CaseBuilder& b) {
        return conv1d(b.numbers("x", {5, 1}, {1, 2, 3, 4, 5}), b.numbers("w", {2, 2}, {1, 1, 1, -1}), 2, 2, 0);
      },
      {3, -1, 7, -1});
}

TEST(Conv1d, RefusesAKernelOfAnotherSize) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return conv1d(b.values("x", {9, 4}), b.values("w", {3, 11}), 3, 1, 1);
              }),
              HasSubstr("conv1d: wants x [time, channels] and w [outputs, 3 * channels]"));
}

}  // namespace
}  // namespace consonant
