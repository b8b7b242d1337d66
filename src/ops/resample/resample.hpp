// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

struct ResampleAttr {
  int64_t rate_in = 0, rate_out = 0;
};

// Sound at another rate: x [..., n] float32, n samples at rate_in -> [..., n rate_out / rate_in, rounded] at rate_out.
// Sample 0 stays at time 0 and nothing is delayed (the filter has no phase); before and after x there is silence. With
// f half the lower rate, what lies below 0.9 f keeps its level within 1e-4, and what lies above f is 100 dB lower. The
// filter is a sinc under a Kaiser window (Kaiser 1974), 132 samples of the lower rate long. At equal rates it is x
// itself.
Tensor resample(Tensor x, int64_t rate_in, int64_t rate_out, Location at = Location::current());

}  // namespace consonant
