// SPDX-License-Identifier: Apache-2.0
#include "ops/attend_latent/attend_latent.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor attend_latent(Tensor q, Tensor turned, Tensor rows, const Mask& mask, float scale, Location at) {
  const Shape &s = q.shape(), &t = turned.shape(), &rs = rows.shape();
  if (s.rank() != 3 || t.rank() != 3 || rs.rank() != 4 || t[0] != s[0] || t[1] != s[1] || rs[1] != 1 ||
      rs[2] != kv_page || rs[3] != s[2] + t[2])
    shape_error("attend_latent", "q [token, head, n], turned [token, head, m] and rows [page, 1, 64, n + m]",
                {q, turned, rows}, at);
  check_mask("attend_latent", mask, q, at);
  return {make_node(id(Op::attend_latent), "attend_latent", {q, turned, rows, mask.pos, mask.seq, mask.pages},
                    {dense(DType::f32, s)}, AttendAttr{scale, mask.window}, at),
          0};
}

}  // namespace consonant
