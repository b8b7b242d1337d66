// SPDX-License-Identifier: Apache-2.0
#pragma once

// The numbers of sampling that must be the same on every device. Probabilities are summed as integers, a weight of 1
// being 2^43: such sums are exact, so they can be made in any order and in any number of parts. What is lost is below
// 2^-43 a token; 2^20 tokens, as many as the op takes, fill 63 bits.
#include <cstdint>

#include "base/exponential.hpp"

namespace consonant {

constexpr float unit_share = 0x1p43f;

// A weight from 0 to 1 as its share; the product is exact.
constexpr uint64_t share_of(float weight) { return static_cast<uint64_t>(static_cast<int64_t>(weight * unit_share)); }

// weight * below, the weight being exp(-below): at most 1 / e. The products are exact.
constexpr uint64_t moment_of(float weight, float below) {
  if (weight == 0) return 0;
  return static_cast<uint64_t>(static_cast<int64_t>(static_cast<double>(weight) * static_cast<double>(below) * 0x1p43));
}

// |mean - below|: how far a token's surprise is from the mean surprise, both counted from the greatest logit.
constexpr float gap_of(double mean, float below) {
  const double gap =
      mean > static_cast<double>(below) ? mean - static_cast<double>(below) : static_cast<double>(below) - mean;
  return gap < 3e38 ? static_cast<float>(gap) : 3e38f;
}

// sum(weight * below) / sum(weight).
constexpr double mean_of(uint64_t moment, uint64_t mass) {
  return static_cast<double>(static_cast<int64_t>(moment)) / static_cast<double>(static_cast<int64_t>(mass));
}

// The share p of a mass, at least 1.
constexpr uint64_t part_of(float p, uint64_t mass) {
  const auto part = static_cast<int64_t>(static_cast<double>(p) * static_cast<double>(static_cast<int64_t>(mass)));
  return part < 1 ? 1 : static_cast<uint64_t>(part);
}

// floor(number * mass / 2^53) for a number below 2^53: where in the mass a draw falls.
constexpr uint64_t place_in(uint64_t mass, uint64_t number) {
  const uint64_t a = number >> 32, b = number & 0xFFFFFFFFu, c = mass >> 32, d = mass & 0xFFFFFFFFu;
  const uint64_t low = b * d, middle = a * d + b * c + (low >> 32), high = a * c + (middle >> 32);
  return high << 11 | (middle << 32 | (low & 0xFFFFFFFFu)) >> 53;
}

// The penalties: repetition (Keskar et al. 2019) divides a positive logit and multiplies a negative one; frequency and
// presence are taken off: logit - count * frequency - presence.
constexpr float adjusted_logit(float logit, float bias, int32_t count, float repeat, float frequency, float presence) {
  logit = rounded_add(logit, bias);
  if (count == 0) return logit;
  logit = logit > 0 ? logit / repeat : rounded_mul(logit, repeat);
  return rounded_add(logit, -rounded_add(rounded_mul(static_cast<float>(count), frequency), presence));
}

// log(softmax(logits)[token]) from the token's logit, the greatest one, and the sum of the weights exp(logit -
// greatest).
constexpr float log_share(float logit, float greatest, uint64_t mass) {
  const double log_sum = log_of_large(static_cast<double>(static_cast<int64_t>(mass)) * 0x1p-43);
  return static_cast<float>(
      rounded_add(rounded_add(static_cast<double>(logit), -static_cast<double>(greatest)), -log_sum));
}

}  // namespace consonant
