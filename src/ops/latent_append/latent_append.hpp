// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/inputs.hpp"

namespace consonant {

// Writes the rows of this step's tokens, latent [token, n] and behind it turned [token, m], to the cache of a layer
// with latent attention ([page, 1, 64, n + m], f32, f16 or q8_0) at each token's position of its sequence; the state's
// new value replaces the old one in `kv` and is returned: the rows of every position so far.
Tensor latent_append(KvState& kv, Tensor latent, Tensor turned, const Mask& mask, Location at = Location::current());

}  // namespace consonant
