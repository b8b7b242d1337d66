// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace consonant {

// slaney: linear below 1000 Hz, logarithmic above. htk: 2595 log10(1 + f / 700).
enum class MelScale { slaney, htk };
// none: each triangle's peak is 1. slaney: its area is 1, in hertz.
enum class MelNorm { none, slaney };

// Whisper's by default.
struct MelSettings {
  int64_t mels = 80;
  int64_t n_fft = 400;
  double rate = 16000;
  double low = 0, high = 8000;  // hertz
  MelScale scale = MelScale::slaney;
  MelNorm norm = MelNorm::slaney;
};

// Triangles [mels, n_fft / 2 + 1] that a power spectrum is multiplied with, equally wide on the mel scale, each from its
// left neighbour's centre to its right neighbour's. Bad input for settings that make no sense.
std::vector<float> mel_filters(const MelSettings& settings);

// 1/2 - 1/2 cos(2 pi i / n), n = size, or size - 1 if it isn't periodic.
std::vector<float> hann_window(int64_t size, bool periodic = true);

}  // namespace consonant
