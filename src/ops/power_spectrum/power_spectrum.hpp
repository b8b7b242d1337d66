// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct PowerSpectrumAttr {
  int64_t hop = 0;
};

// |DFT|^2 of windowed frames: x [sample], window [n], frame t at samples t * hop ... t * hop + n - 1 ->
// [(samples - n) / hop + 1, n / 2 + 1] float32, n even. Computed in float64.
Tensor power_spectrum(Tensor x, Tensor window, int64_t hop, Location at = Location::current());

}  // namespace consonant
