// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/inputs.hpp"
#include "ops/rope/rope.hpp"

namespace consonant {

struct RopeAppendAttr {
  RopeAttr rope;
  bool q_norm = false, k_norm = false;  // inputs after `pages`, in this order
  float epsilon = 0;
};

// Weights [dim] that heads are normalised with before they turn; empty: they aren't.
struct HeadNorms {
  Tensor q, k;
  float epsilon = 0;
};

// What lies between the projections of a layer and its attention, in one node:
//   q = rope(rms_norm(q)), kv_append(rope(rms_norm(k)), v)
// q [token, head, dim], k [token, kv head, dim], v [token, kv head, value dim]; angles [token, dims] are rope_angles'.
// Returns the turned queries, float32; the state's new value replaces the old one in `kv`, as kv_append does it.
Tensor rope_append(KvState& kv, Tensor q, Tensor k, Tensor v, Tensor angles, const RopeAttr& rope,
                   const HeadNorms& norms, const Mask& mask, Location at = Location::current());

}  // namespace consonant
