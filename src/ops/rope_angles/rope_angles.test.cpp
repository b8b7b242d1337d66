// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_angles/rope_angles.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(RopeAngles, AreThePositionTimesTheFrequencies) {
  // base 100, four dims: frequencies 1 and 0.1; halved by the scale, the second divided by 4.
  const auto cosines = [](std::vector<float> angles) {
    std::vector<float> want;
    for (const float a : angles) want.push_back(std::cos(a));
    for (const float a : angles) want.push_back(std::sin(a));
    return want;
  };
  expect_near(
      [](CaseBuilder& b) {
        return rope_angles(b.integers("pos", {1}, {3}), {4, 100, 1, true, {}});
      },
      cosines({3, 0.3f}));
  expect_near(
      [](CaseBuilder& b) {
        return rope_angles(b.integers("pos", {1}, {3}), {4, 100, 0.5, true, b.numbers("divisors", {2}, {1, 4})});
      },
      cosines({1.5f, 0.0375f}));
}

// The angle itself is rounded to float32, as the models' own implementations do; its cosine is then exact.
TEST(RopeAngles, StayRightFarOut) {
  const int32_t far = 1000003;
  const float angle = static_cast<float>(far) * 1.0f;
  expect_near(
      [](CaseBuilder& b) {
        return rope_angles(b.integers("pos", {1}, {1000003}), {2, 10000, 1, true, {}});
      },
      {static_cast<float>(std::cos(double{angle})), static_cast<float>(std::sin(double{angle}))});
}

// Of eight dims over 128 positions with base 10000, pair 1 turns (128 / 10) / 2 pi = 2 times and pair 2 a fifth of
// that: with `fast` 3 and `slow` 1 the blend runs from pair 0 to pair 2.
TEST(RopeAngles, BlendFrequenciesAsYarnDoes) {
  std::vector<float> want;
  const float frequencies[] = {1.0f, 0.1f * (0.5f + 0.5f / 4), 0.01f / 4, 0.001f / 4};
  for (const float f : frequencies) want.push_back(1.5f * std::cos(7 * f));
  for (const float f : frequencies) want.push_back(1.5f * std::sin(7 * f));
  expect_near(
      [](CaseBuilder& b) {
        return rope_angles(b.integers("pos", {1}, {7}), {8, 10000, 1, true, {}, {4, 128, 3, 1}, 1.5});
      },
      want);
}

TEST(RopeAngles, RefuseOddDimsAndWrongDivisors) {
  const auto pos = [](CaseBuilder& b) { return b.integers("pos", Shape({2}, Axis::token), 0, 9); };
  EXPECT_THAT(refusal_of([&](CaseBuilder& b) { return rope_angles(pos(b), {5}); }),
              HasSubstr("an even number of dims, not 5"));
  EXPECT_THAT(refusal_of([&](CaseBuilder& b) {
                return rope_angles(pos(b), {8, 1e4, 1, true, b.vector("f", 3)});
              }),
              HasSubstr("rope_angles: wants divisors [4]; got pos i32[token<=2] f f32[3]"));
  EXPECT_THAT(refusal_of([](CaseBuilder& b) { return rope_angles(b.values("pos", {2}), {8}); }),
              HasSubstr("pos f32[2]"));
}

}  // namespace
}  // namespace consonant
