// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "graph/inputs.hpp"

namespace consonant {

// Writes k and v [token, head, dim] to the cache at each token's position of its sequence; the state's new value
// replaces the old one in `kv` and is returned: keys and values of every position so far. The cache is f32, f16 or
// q8_0.
std::pair<Tensor, Tensor> kv_append(KvState& kv, Tensor k, Tensor v, const Mask& mask,
                                    Location at = Location::current());

}  // namespace consonant
