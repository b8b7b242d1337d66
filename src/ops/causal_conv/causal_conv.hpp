// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/inputs.hpp"

namespace consonant {

struct CausalConvAttr {
  int64_t kernel = 0;
};

// The convolution along each sequence, a channel by itself, that comes before a Mamba layer's scan (Gu and Dao 2023),
// and SiLU of it:
//
//   y[t, c] = silu(b[c] + sum_k w[c, k] x[t - (kernel - 1) + k, c])
//
// x [token, channel] float32, w [channel * kernel] the taps of one channel after those of another, the present token's
// last; b [channel]. Inputs before the batch come from `state` [slot, kernel - 1, channel], which the sequence's last
// ones replace; those before position 0 are zero, whatever it holds.
Tensor causal_conv(Tensor& state, Tensor x, Tensor w, Tensor b, const Slots& slots, Location at = Location::current());

}  // namespace consonant
