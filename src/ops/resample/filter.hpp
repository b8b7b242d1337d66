// SPDX-License-Identifier: Apache-2.0
#pragma once

// The filter of resample, for all kernels.
#include <cstdint>
#include <numeric>

#include "base/checked.hpp"

namespace consonant {

// Output m lies at m down / up input samples. It is the sum over taps j of weight [phase, tap] times input sample
// first(m) + j, where the phase is what is left of m down modulo up.
struct ResampleFilter {
  static constexpr double half_width = 66;  // in samples of the lower rate
  static constexpr double beta = 10.06;     // for 100 dB
  static constexpr double edge = 0.95;      // of half the lower rate: the middle of the transition from 0.9 to 1

  int64_t up = 1, down = 1;
  double scale = 1;  // input samples to samples of the lower rate
  int64_t half = 0;  // taps on each side of the output, a multiple of 8

  ResampleFilter(int64_t rate_in, int64_t rate_out) {
    const int64_t common = std::gcd(rate_in, rate_out);
    up = rate_out / common, down = rate_in / common;
    scale = up < down ? static_cast<double>(up) / static_cast<double>(down) : 1;
    half = round_up(static_cast<int64_t>(half_width / scale) + 1, 8);
  }

  constexpr int64_t taps() const { return 2 * half; }
  constexpr int64_t phase(int64_t m) const { return m % up * (down % up) % up; }
  constexpr int64_t first(int64_t m) const { return m / up * down + m % up * down / up - half + 1; }
  // From the tap's input sample to the output, in samples of the lower rate.
  constexpr double distance(int64_t phase, int64_t tap) const {
    return scale * (static_cast<double>(phase) / static_cast<double>(up) + static_cast<double>(half - 1 - tap));
  }
};

// sin(pi x) / (pi x) with the sine's Taylor polynomial on half a turn, within 1e-15.
constexpr double sinc(double x) {
  if (x < 0) x = -x;
  if (x < 1e-9) return 1;
  const auto turns = static_cast<int64_t>(x + 0.5);
  const double angle = 3.141592653589793 * (x - static_cast<double>(turns)), square = angle * angle;
  double sum = 1;
  for (int degree = 20; degree > 0; degree -= 2) sum = 1 - sum * square / (degree * (degree + 1));
  const double sine = turns % 2 == 0 ? angle * sum : -angle * sum;
  return sine / (3.141592653589793 * x);
}

// The modified Bessel function I0 of 2 sqrt(q), by its series.
constexpr double bessel(double q) {
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) sum += term *= q / (k * k);
  return sum;
}

// Of a tap at this distance, in samples of the lower rate.
constexpr float resample_weight(double distance, double scale) {
  const double part = distance / ResampleFilter::half_width, inside = 1 - part * part;
  if (inside <= 0) return 0;
  constexpr double q = ResampleFilter::beta * ResampleFilter::beta / 4;
  return static_cast<float>(scale * ResampleFilter::edge * sinc(ResampleFilter::edge * distance) * bessel(q * inside) /
                            bessel(q));
}

}  // namespace consonant
