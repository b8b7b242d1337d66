// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/inputs.hpp"

namespace consonant {

// States that a head may have at most.
inline constexpr int64_t most_states = 256;

// What a scan reads; all float32. Head h uses group h / (heads / groups) of B and C.
struct SsmInputs {
  Tensor x;        // [token, head, dim]
  Tensor dt;       // [token, head], before its bias and softplus
  Tensor b, c;     // [token, group, state]
  Tensor dt_bias;  // [head]
  Tensor a, d;     // [head]
};

// The recurrence of Mamba-2 (Dao and Gu 2024) along each sequence. With dt' = softplus(dt + dt_bias), for each head and
// each element i of it
//
//   h[s, i] = exp(dt' a) h[s, i] + dt' b[s] x[i],   y[i] = sum_s c[s] h[s, i] + d x[i]
//
// h begins at `state` [slot, head, state, dim], which its last value replaces, or at position 0 with zeros. A token's
// update is one step in float32 from the stored state, wherever the sequence is cut: any cuts give the same bits.
// Returns y [token, head, dim].
Tensor ssm_scan(Tensor& state, const SsmInputs& in, const Slots& slots, Location at = Location::current());

}  // namespace consonant
