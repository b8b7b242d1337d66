// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace consonant {

// Triangular filters [mels, n_fft / 2 + 1] from the bins of a spectrum to mel bands between `lowest` and `highest` Hz,
// on the scale of Slaney's Auditory Toolbox (1998): 3 f / 200 mel below 1000 Hz, logarithmic above with 27 mel to a
// factor of 6.4. Each triangle is divided by half its width in Hz. Computed in float64.
std::vector<float> mel_filters(int64_t mels, int64_t n_fft, double rate, double lowest, double highest);

// The periodic Hann window: (1 - cos(2 pi i / n)) / 2.
std::vector<float> hann_window(int64_t n);

}  // namespace consonant
