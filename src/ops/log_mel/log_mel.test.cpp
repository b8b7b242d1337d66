// SPDX-License-Identifier: Apache-2.0
#include "ops/log_mel/log_mel.hpp"

#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

constexpr float nothing = -std::numeric_limits<float>::infinity();

// The peak is 2, so the floor is -6, and 1e-9 is raised to it.
TEST(LogMel, CutsEightBelowThePeak) {
  const Build build = [](CaseBuilder& b) {
    return log_mel(b.numbers("x", {1, 3}, {100, 1, 1e-9f}), b.numbers("peak", {1}, {nothing})).first;
  };
  expect_near(build, {1.5f, 1, -0.5f});
}

TEST(LogMel, RemembersALouderPast) {
  expect_near(
      [](CaseBuilder& b) {
        return log_mel(b.numbers("x", {1, 3}, {100, 1, 1e-9f}), b.numbers("peak", {1}, {10})).first;
      },
      {1.5f, 1.5f, 1.5f});
}

TEST(LogMel, OfSilenceIsTheFloor) {
  expect_near(
      [](CaseBuilder& b) {
        return log_mel(b.numbers("x", {2, 2}, {0}), b.numbers("peak", {1}, {nothing})).first;
      },
      {-1.5f, -1.5f, -1.5f, -1.5f});
}

TEST(LogMel, WantsOnePeak) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) {
                return log_mel(b.values("x", {2, 2}), b.values("peak", {2})).first;
              }),
              HasSubstr("peak [1]"));
}

}  // namespace
}  // namespace consonant
