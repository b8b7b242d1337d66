// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace consonant {

// slaney: linear below 1000 Hz, logarithmic above. htk: 2595 log10(1 + f / 700).
enum class MelScale { slaney, htk };
// none: each triangle's peak is 1. slaney: its area is 1, in hertz.
enum class MelNorm { none, slaney };

// Triangles [mels, n_fft / 2 + 1] that a power spectrum is multiplied with, between `lowest` and `highest` Hz: equally
// wide on the mel scale, each from its left neighbour's centre to its right neighbour's. Computed in float64. Bad input
// for numbers that make no sense.
std::vector<float> mel_filters(int64_t mels, int64_t n_fft, double rate, double lowest, double highest,
                               MelScale scale = MelScale::slaney, MelNorm norm = MelNorm::slaney);

// 1/2 - 1/2 cos(2 pi i / n), n = size, or size - 1 if it isn't periodic.
std::vector<float> hann_window(int64_t size, bool periodic = true);

}  // namespace consonant
