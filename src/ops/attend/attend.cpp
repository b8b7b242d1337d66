// SPDX-License-Identifier: Apache-2.0
#include "ops/attend/attend.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor attend(Tensor q, Tensor keys, Tensor values, const Mask& mask, float scale, Location at) {
  const Shape &s = q.shape(), &ks = keys.shape(), &vs = values.shape();
  if (s.rank() != 3 || ks.rank() != 4 || vs.rank() != 4 || ks[2] != s[2] || ks[1] != vs[1] || ks[1] < 1 ||
      s[1] % ks[1] != 0 || vs[0] != ks[0] || ks[3] != kv_page || vs[2] != kv_page)
    shape_error("attend", "q [token, head, dim], keys [page, kv head, dim, 64], values [page, kv head, 64, value dim]",
                {q, keys, values}, at);
  check_mask("attend", mask, q, at);
  return {make_node(id(Op::attend), "attend", {q, keys, values, mask.pos, mask.seq, mask.pages},
                    {dense(DType::f32, s.with_last(vs[3]))}, AttendAttr{scale, mask.window}, at),
          0};
}

}  // namespace consonant
