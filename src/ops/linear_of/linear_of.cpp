// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/linear_of.hpp"

#include "ops/op.hpp"

namespace consonant {

namespace {

Tensor make(std::vector<Tensor> inputs, const LinearOfAttr& attr, Location at) {
  const Tensor &ids = inputs[0], &x = inputs[1], &w = inputs[2];
  const Shape &i = ids.shape(), &s = x.shape(), &m = w.shape();
  const bool fits = ids.type() == DType::i32 && i.rank() == 2 && (s.rank() == 2 || (s.rank() == 3 && s[1] == i[1])) &&
                    s.axis() == i.axis() && s[0] == i[0] && m.rank() == 3 && m[0] > 0 && s.last() == m[2];
  if (!fits)
    shape_error("linear_of",
                "ids [token, used] i32, x [token, inputs] or [token, used, inputs] and w [expert, outputs, inputs]",
                inputs, at);
  if (attr.gated && inputs[3].shape() != m) shape_error("linear_of", "two w of equal shape", {w, inputs[3]}, at);
  const Shape out({i[0], i[1], m[1]}, i.axis());
  return {make_node(id(Op::linear_of), "linear_of", std::move(inputs), {dense(DType::f32, out)}, attr, at), 0};
}

}  // namespace

Tensor linear_of(Tensor ids, Tensor x, Tensor w, Location at) { return make({ids, x, w}, {}, at); }

Tensor linear_of_gated(Activation activation, Tensor ids, Tensor x, Tensor gate, Tensor up, Location at) {
  return make({ids, x, gate, up}, {true, activation}, at);
}

}  // namespace consonant
