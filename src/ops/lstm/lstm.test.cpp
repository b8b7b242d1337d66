// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm/lstm.hpp"

#include <cmath>
#include <limits>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// One unit, no recurrence: the gates are the input's alone, in the order i, f, g, o.
TEST(Lstm, HasItsGatesInTheUsualOrder) {
  const double c = logistic(3) * 0.25 + logistic(2) * std::tanh(0.5);
  expect_near(
      [](CaseBuilder& b) {
        return lstm(b.numbers("x", {1, 4}, {1, 2, 0.25f, -2}), b.numbers("w", {4, 1}, {0}),
                    b.numbers("b", {4}, {1, 1, 0.25f, 1}), b.numbers("state", {2, 1}, {0.5f, 0.25f}))
            .first;
      },
      {static_cast<float>(logistic(-1) * std::tanh(c))});
}

// Two units; unit 0 sees unit 1 through g, and unit 1 nothing.
TEST(Lstm, FeedsItsOutputBack) {
  const Build build = [](CaseBuilder& b) {
    return lstm(b.numbers("x", {2, 8}, {0, 0, 0, 0, 0, 1, 0, 0}),
                b.numbers("w", {8, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0}), b.numbers("b", {8}, {0}),
                b.numbers("state", {2, 2}, {0}))
        .first;
  };
  const double c1 = 0.5 * std::tanh(1), h1 = 0.5 * std::tanh(c1);
  const double c1b = 0.5 * c1 + 0.5 * std::tanh(1), h1b = 0.5 * std::tanh(c1b);
  const double c0b = 0.5 * std::tanh(3 * h1), h0b = 0.5 * std::tanh(c0b);
  expect_near(build, {0, static_cast<float>(h1), static_cast<float>(h0b), static_cast<float>(h1b)});
}

TEST(Lstm, ShowsWhatIsNoNumberOrTooLarge) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DeviceKind device : both_devices)
    for (int gate = 0; gate < 4; ++gate)
      for (const float x : {nan, inf, -inf, 1e30f, -1e30f}) {
        std::vector<float> gates(4, 1);
        gates[static_cast<size_t>(gate)] = x;
        const std::vector<float> y = compute(device, [&](CaseBuilder& b) {
          return lstm(b.numbers("x", {1, 4}, gates), b.numbers("w", {4, 1}, {0}), b.numbers("b", {4}, {0}),
                      b.numbers("state", {2, 1}, {0.5f}))
              .first;
        });
        EXPECT_EQ(std::isnan(y[0]), std::isnan(x)) << name(device) << ", gate " << gate << " of " << x;
      }
}

TEST(Lstm, RefusesAStateOfAnotherSize) {
  EXPECT_THAT(
      refusal_of([](CaseBuilder& b) {
        return lstm(b.values("x", {2, 8}), b.values("w", {8, 2}), b.vector("b", 8), b.values("state", {2, 3})).first;
      }),
      HasSubstr("lstm: wants x [time, 4 n] of a fixed size, w [4 n, n], b [4 n] and state [2, n]"));
}

TEST(Lstm, AgreesOnEveryInstructionSet) {
  expect_on_every_instruction_set([](CaseBuilder& b) {
    return lstm(b.values("x", {1, 4}), b.matrix("w", DType::f32, 4, 1), b.vector("b", 4), b.values("state", {2, 1}))
        .first;
  });
}

}  // namespace
}  // namespace consonant
