// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/inputs.hpp"

namespace consonant {

struct AttendAttr {
  float scale = 1;
  int64_t window = 0;  // 0: no window
};

// Attention of q [token, head, dim] over the cache that kv_append returned (keys [page, kv head, dim, 64], values
// [page, kv head, 64, value dim]) as `mask` lets each token see it: softmax(scale q k^T) v -> [token, head, value dim].
// Query head h uses KV head h / (heads / kv heads) (Ainslie et al. 2023). Computed page by page with a running maximum
// and sum (Milakov and Gimelshein 2018), so there is no matrix of scores.
Tensor attend(Tensor q, Tensor keys, Tensor values, const Mask& mask, float scale, Location at = Location::current());

}  // namespace consonant
