// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attend/attend.hpp"

namespace consonant {

// Latent attention in its absorbed form (DeepSeek-AI 2024): keys and values of all heads are made from one row a
// position, n numbers without a position and m that turn with it, so that a query in the rows' own space needs nothing
// else. q [token, head, n] and turned [token, head, m], the cache that latent_append returned, rows [page, 1, 64,
// n + m]:
//   softmax(scale (q, turned) row^T) times the first n numbers of the rows -> [token, head, n]
// over the positions that `mask` lets each token see. The node's attributes are an AttendAttr.
Tensor attend_latent(Tensor q, Tensor turned, Tensor rows, const Mask& mask, float scale,
                     Location at = Location::current());

}  // namespace consonant
