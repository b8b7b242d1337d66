// SPDX-License-Identifier: Apache-2.0
#include "ops/attend_weights/attend_weights.hpp"

#include <algorithm>

#include "ops/op.hpp"

namespace consonant {

Tensor attend_weights(Tensor q, Tensor keys, const Mask& mask, int64_t positions, float scale,
                      const std::vector<int64_t>& heads, Location at) {
  const Shape &s = q.shape(), &ks = keys.shape();
  const auto outside = [&](int64_t head) { return head < 0 || head >= s[1]; };
  if (s.rank() != 3 || ks.rank() != 4 || ks[2] != s[2] || ks[1] < 1 || s[1] % ks[1] != 0 || ks[3] != kv_page ||
      positions < 1 || heads.empty() || std::any_of(heads.begin(), heads.end(), outside))
    shape_error("attend_weights", "q [token, head, dim], keys [page, kv head, dim, 64] and some of q's heads",
                {q, keys}, at);
  check_mask("attend_weights", mask, q, at);
  const Shape out({s[0], static_cast<int64_t>(heads.size()), positions}, s.axis());
  return {make_node(id(Op::attend_weights), "attend_weights", {q, keys, mask.seq, mask.pages}, {dense(DType::f32, out)},
                    AttendWeightsAttr{scale, heads, positions}, at),
          0};
}

}  // namespace consonant
