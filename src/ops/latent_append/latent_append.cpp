// SPDX-License-Identifier: Apache-2.0
#include "ops/latent_append/latent_append.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor latent_append(KvState& kv, Tensor latent, Tensor turned, const Mask& mask, Location at) {
  const Shape& rows = kv.values.shape();
  if (latent.shape().rank() != 2 || turned.shape().rank() != 2 || latent.shape()[0] != turned.shape()[0] ||
      rows.rank() != 4 || rows[1] != 1 || rows[2] != kv_page || rows[3] != latent.shape()[1] + turned.shape()[1])
    shape_error("latent_append", "rows [page, 1, 64, n + m], latent [token, n] and turned [token, m]",
                {kv.values, latent, turned}, at);
  const DType type = kv.values.type();
  if (type != DType::f32 && type != DType::f16 && type != DType::q8_0)
    shape_error("latent_append", "a cache of f32, f16 or q8_0", {kv.values}, at);
  check_mask("latent_append", mask, latent, at);
  Output out = dense(type, rows);
  out.alias = 0;
  auto node = make_node(id(Op::latent_append), "latent_append",
                        {kv.values, latent, turned, mask.pos, mask.seq, mask.pages}, {out}, {}, at);
  return kv.values = {node, 0};
}

}  // namespace consonant
