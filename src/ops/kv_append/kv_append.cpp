// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_append/kv_append.hpp"

#include "ops/op.hpp"

namespace consonant {

std::pair<Tensor, Tensor> kv_append(KvState& kv, Tensor k, Tensor v, const Mask& mask, Location at) {
  const Shape &ks = kv.keys.shape(), &vs = kv.values.shape();
  if (k.shape().rank() != 3 || v.shape().rank() != 3 || k.shape()[0] != v.shape()[0] || k.shape()[1] != ks[1] ||
      k.shape()[2] != ks[2] || v.shape()[1] != vs[1] || v.shape()[2] != vs[3] || vs[0] != ks[0] || ks[3] != kv_page ||
      vs[2] != kv_page)
    shape_error("kv_append", "keys [page, head, dim, 64], values [page, head, 64, dim], k and v [token, head, dim]",
                {kv.keys, kv.values, k, v}, at);
  const DType type = kv.keys.type();
  if (type != kv.values.type() || (type != DType::f32 && type != DType::f16 && type != DType::q8_0))
    shape_error("kv_append", "a cache of f32, f16 or q8_0", {kv.keys, kv.values}, at);
  check_mask("kv_append", mask, k, at);
  Output keys = dense(type, ks), values = dense(type, vs);
  keys.alias = 0;
  values.alias = 1;
  auto node = make_node(id(Op::kv_append), "kv_append", {kv.keys, kv.values, k, v, mask.pos, mask.seq, mask.pages},
                        {keys, values}, {}, at);
  kv = {{node, 0}, {node, 1}};
  return {kv.keys, kv.values};
}

}  // namespace consonant
