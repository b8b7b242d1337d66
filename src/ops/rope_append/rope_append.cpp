// SPDX-License-Identifier: Apache-2.0
#include "ops/rope_append/rope_append.hpp"

#include "ops/kv_append/kv_append.hpp"
#include "ops/op.hpp"

namespace consonant {

Tensor rope_append(KvState& kv, Tensor q, Tensor k, Tensor v, Tensor angles, const RopeAttr& rope,
                   const HeadNorms& norms, const Mask& mask, Location at) {
  const Shape &qs = q.shape(), &ks = k.shape();
  if (qs.rank() != 3 || ks.rank() != 3 || qs[0] != ks[0] || qs[2] != ks[2] || rope.dims > qs[2])
    shape_error("rope_append", "q [token, head, dim] and k [token, kv head, dim], dim no less than what turns", {q, k},
                at);
  if (angles.shape().rank() != 2 || angles.shape()[0] != qs[0] || angles.shape()[1] != rope.dims)
    shape_error("rope_append", "angles [token, dims]", {q, angles}, at);
  for (const Tensor& norm : {norms.q, norms.k})
    if (norm && (norm.shape().rank() != 1 || norm.shape()[0] != qs[2]))
      shape_error("rope_append", "norms [dim]", {q, norm}, at);
  // The cache's own rules are kv_append's.
  KvState next = kv;
  kv_append(next, k, v, mask, at);
  auto node = next.keys.node;
  std::vector<Tensor> inputs = {kv.keys, kv.values, q, k, v, angles, mask.pos, mask.seq, mask.pages};
  for (const Tensor& norm : {norms.q, norms.k})
    if (norm) inputs.push_back(norm);
  node = make_node(id(Op::rope_append), "rope_append", std::move(inputs),
                   {dense(DType::f32, qs), node->outputs[0], node->outputs[1]},
                   RopeAppendAttr{rope, bool{norms.q}, bool{norms.k}, norms.epsilon}, at);
  kv = {{node, 1}, {node, 2}};
  return {node, 0};
}

}  // namespace consonant
