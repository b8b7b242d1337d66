// SPDX-License-Identifier: Apache-2.0
#include "ops/power_spectrum/fourier.hpp"

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <numbers>

namespace consonant {

namespace {

// The remainder keeps the angle of exp(-2 pi i k / n) small, and so exact.
double angle(int64_t k, int64_t n) {
  return -2 * std::numbers::pi * static_cast<double>(k % n) / static_cast<double>(n);
}

int64_t next_factor(int64_t n) {
  if (n % 4 == 0) return 4;
  for (int64_t factor = 2; factor * factor <= n; ++factor)
    if (n % factor == 0) return factor;
  return n;
}

}  // namespace

FourierPlan::FourierPlan(int64_t n) : n(n) {
  int64_t length = 1;
  for (int64_t rest = n / 2; rest > 1;) {
    Stage stage;
    stage.radix = next_factor(rest);
    stage.length = length;
    for (int64_t j = 0; j < length; ++j)
      for (int64_t k = 0; k < stage.radix; ++k)
        for (int64_t p = 0; p < stage.radix; ++p) {
          const double at = angle((j + length * k) * p, length * stage.radix);
          stage.factor_re.push_back(std::cos(at));
          stage.factor_im.push_back(std::sin(at));
        }
    rest /= stage.radix, length *= stage.radix;
    stages.push_back(std::move(stage));
  }
  for (int64_t k = 0; k <= n / 2; ++k) {
    split_re.push_back(std::cos(angle(k, n)));
    split_im.push_back(std::sin(angle(k, n)));
  }
}

const FourierPlan& fourier_plan(int64_t n) {
  static std::mutex mutex;
  static std::map<int64_t, std::unique_ptr<FourierPlan>> plans;
  const std::lock_guard lock(mutex);
  auto& plan = plans[n];
  if (!plan) plan = std::make_unique<FourierPlan>(n);
  return *plan;
}

}  // namespace consonant
