// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_pack/kv_pack.hpp"

#include "ops/op.hpp"

namespace consonant {

std::pair<Tensor, Tensor> kv_pack(Tensor k, Tensor v, DType type, Location at) {
  const Shape &ks = k.shape(), &vs = v.shape();
  if (ks.rank() != 3 || vs.rank() != 3 || ks[0] != vs[0] || ks[1] != vs[1] || ks.axis() != Axis::fixed ||
      (type != DType::f32 && type != DType::f16))
    shape_error("kv_pack", "k [position, head, dim] and v [position, head, dim] of a fixed size, packed as f32 or f16",
                {k, v}, at);
  const int64_t pages = (ks[0] + kv_page - 1) / kv_page;
  auto node = make_node(id(Op::kv_pack), "kv_pack", {k, v},
                        {dense(type, {pages, ks[1], ks[2], kv_page}), dense(type, {pages, vs[1], kv_page, vs[2]})},
                        KvPackAttr{type}, at);
  return {{node, 0}, {node, 1}};
}

}  // namespace consonant
