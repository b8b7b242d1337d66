// SPDX-License-Identifier: Apache-2.0
#include "ops/patches/patches.hpp"

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(Patches, PadEachGroupByItself) {
  expect_exactly(
      [](CaseBuilder& b) {
        return patches(b.numbers("x", {2, 2, 1}, {1, 2, 3, 4}), {3, 1, 1, 1, Edge::zeros});
      },
      {0, 1, 2, 1, 2, 0, 0, 3, 4, 3, 4, 0});
}

TEST(Patches, MirrorWithoutRepeatingTheEdge) {
  expect_exactly(
      [](CaseBuilder& b) {
        return patches(b.numbers("x", {1, 4, 1}, {1, 2, 3, 4}), {4, 3, 2, 3, Edge::mirror});
      },
      {3, 2, 1, 2, 2, 3, 4, 3});
}

TEST(Patches, RepeatTheEdge) {
  expect_exactly(
      [](CaseBuilder& b) {
        return patches(b.numbers("x", {1, 2, 1}, {1, 2}), {3, 1, 2, 1, Edge::repeat});
      },
      {1, 1, 1, 1, 1, 2, 1, 2, 2});
}

TEST(Patches, SkipByTheStrideAndKeepRowsWhole) {
  expect_exactly(
      [](CaseBuilder& b) {
        return patches(b.numbers("x", {1, 5, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), {2, 2, 0, 0, Edge::zeros});
      },
      {1, 2, 3, 4, 5, 6, 7, 8});
}

TEST(Patches, CantMirrorMoreThanThereIs) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return patches(b.values("x", {1, 4, 1}), {2, 1, 4, 0, Edge::mirror});
              }),
              HasSubstr("4 rows before and 0 after that it has to mirror"));
}

}  // namespace
}  // namespace consonant
