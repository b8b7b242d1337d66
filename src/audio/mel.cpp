// SPDX-License-Identifier: Apache-2.0
#include "audio/mel.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"

namespace consonant {

namespace {

// Slaney's scale: 3 mels each 200 Hz up to the corner, then 27 mels each factor of 6.4.
constexpr double corner_hz = 1000, corner_mel = 15, hz_per_mel = 200.0 / 3;
const double log_step = std::log(6.4) / 27;

double to_mel(double hz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hz / 700);
  return hz < corner_hz ? hz / hz_per_mel : corner_mel + std::log(hz / corner_hz) / log_step;
}

double to_hz(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  return mel < corner_mel ? mel * hz_per_mel : corner_hz * std::exp((mel - corner_mel) * log_step);
}

}  // namespace

std::vector<float> mel_filters(int64_t mels, int64_t n_fft, double rate, double lowest, double highest, MelScale scale,
                               MelNorm norm) {
  constexpr int64_t most_mels = 1024, most_fft = 65536;
  if (mels < 1 || mels > most_mels) bad_input("{} mel bands; 1 to {} expected", mels, most_mels);
  if (n_fft < 2 || n_fft > most_fft || n_fft % 2 != 0)
    bad_input("a spectrum of {} samples; an even number from 2 to {} expected", n_fft, most_fft);
  if (!(rate > 0 && lowest >= 0 && lowest < highest && highest <= rate / 2))
    bad_input("mel bands from {} to {} Hz at {} samples a second; they must lie between 0 and half of that", lowest,
              highest, rate);
  const double low = to_mel(lowest, scale), high = to_mel(highest, scale);
  std::vector<double> edges(static_cast<size_t>(mels + 2));  // hertz
  for (size_t i = 0; i < edges.size(); ++i)
    edges[i] = to_hz(low + (high - low) * static_cast<double>(i) / static_cast<double>(mels + 1), scale);
  const int64_t bins = n_fft / 2 + 1;
  std::vector<float> filters(static_cast<size_t>(mels * bins));
  for (int64_t m = 0; m < mels; ++m) {
    const double left = edges[static_cast<size_t>(m)], centre = edges[static_cast<size_t>(m + 1)],
                 right = edges[static_cast<size_t>(m + 2)];
    const double height = norm == MelNorm::slaney ? 2 / (right - left) : 1;
    for (int64_t k = 0; k < bins; ++k) {
      const double hz = static_cast<double>(k) * rate / static_cast<double>(n_fft);
      const double slope = std::min((hz - left) / (centre - left), (right - hz) / (right - centre));
      filters[static_cast<size_t>(m * bins + k)] = static_cast<float>(std::max(slope, 0.0) * height);
    }
  }
  return filters;
}

std::vector<float> hann_window(int64_t size, bool periodic) {
  if (size < 2) bad_input("a window of {} samples; 2 or more expected", size);
  const double period = static_cast<double>(periodic ? size : size - 1);
  std::vector<float> window(static_cast<size_t>(size));
  for (size_t i = 0; i < window.size(); ++i)
    window[i] = static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / period));
  return window;
}

}  // namespace consonant
