// SPDX-License-Identifier: Apache-2.0
#include "audio/mel.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace consonant {

namespace {

constexpr double break_hz = 1000, break_mel = 15;
const double step = std::log(6.4) / 27;

double to_mel(double hz) { return hz < break_hz ? 3 * hz / 200 : break_mel + std::log(hz / break_hz) / step; }
double to_hz(double mel) { return mel < break_mel ? 200 * mel / 3 : break_hz * std::exp(step * (mel - break_mel)); }

}  // namespace

std::vector<float> mel_filters(int64_t mels, int64_t n_fft, double rate, double lowest, double highest) {
  const int64_t bins = n_fft / 2 + 1;
  const double first = to_mel(lowest), width = (to_mel(highest) - first) / static_cast<double>(mels + 1);
  const auto edge = [&](int64_t i) { return to_hz(first + width * static_cast<double>(i)); };
  std::vector<float> filters(static_cast<size_t>(mels * bins));
  for (int64_t m = 0; m < mels; ++m) {
    const double left = edge(m), centre = edge(m + 1), right = edge(m + 2);
    for (int64_t k = 0; k < bins; ++k) {
      const double hz = rate * static_cast<double>(k) / static_cast<double>(n_fft);
      const double height = std::min((hz - left) / (centre - left), (right - hz) / (right - centre));
      filters[static_cast<size_t>(m * bins + k)] = static_cast<float>(std::max(0.0, height) * 2 / (right - left));
    }
  }
  return filters;
}

std::vector<float> hann_window(int64_t n) {
  std::vector<float> window(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    window[static_cast<size_t>(i)] =
        static_cast<float>((1 - std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n))) / 2);
  return window;
}

}  // namespace consonant
