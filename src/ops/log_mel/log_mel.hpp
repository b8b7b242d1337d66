// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "graph/node.hpp"

namespace consonant {

// Whisper's compression of mel energies (Radford et al. 2022): with v = log10(max(x, 1e-10)) and the peak the greatest
// of all v and of `peak` [1], y = (max(v, peak - 8) + 4) / 4. x [frame, mel]; returns y and the new peak [1], float32.
std::pair<Tensor, Tensor> log_mel(Tensor x, Tensor peak, Location at = Location::current());

}  // namespace consonant
