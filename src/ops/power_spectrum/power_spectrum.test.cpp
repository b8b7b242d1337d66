// SPDX-License-Identifier: Apache-2.0
#include "ops/power_spectrum/power_spectrum.hpp"

#include <cmath>
#include <numbers>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

TEST(PowerSpectrum, OfAConstantIsAllAtZero) {
  expect_near([](CaseBuilder& b) { return power_spectrum(b.numbers("x", {6}, {3}), b.numbers("w", {4}, {1}), 2); },
              {144, 0, 0, 144, 0, 0});
}

TEST(PowerSpectrum, OfACosineIsAtItsFrequency) {
  std::vector<float> x;
  for (int i = 0; i < 400; ++i) x.push_back(static_cast<float>(std::cos(2 * std::numbers::pi * 7 * i / 400)));
  for (const DeviceKind device : both_devices) {
    const auto y = compute(device, [&](CaseBuilder& b) {
      return power_spectrum(b.numbers("x", {400}, x), b.numbers("w", {400}, {1}), 160);
    });
    ASSERT_EQ(y.size(), 201u);
    for (size_t k = 0; k < y.size(); ++k) EXPECT_NEAR(y[k], k == 7 ? 40000 : 0, 1e-2) << name(device) << ' ' << k;
  }
}

TEST(PowerSpectrum, RefusesAnOddWindow) {
  EXPECT_THAT(
      refusal_of([](CaseBuilder& b) { return power_spectrum(b.values("x", {100}), b.vector("window", 25), 10); }),
      HasSubstr("of an even n"));
}

}  // namespace
}  // namespace consonant
