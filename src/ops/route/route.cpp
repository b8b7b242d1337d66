// SPDX-License-Identifier: Apache-2.0
#include "ops/route/route.hpp"

#include <fmt/format.h>

#include "ops/op.hpp"

namespace consonant {

Routed route(Tensor logits, Tensor bias, const RouteAttr& attr, Location at) {
  const Shape& s = logits.shape();
  if (s.rank() != 2 || logits.type() != DType::f32 || s[1] > INT32_MAX)
    shape_error("route", "logits [token, expert] f32", {logits}, at);
  const int64_t experts = s[1];
  if (attr.groups < 1 || experts % attr.groups != 0 || attr.groups_used < 1 || attr.groups_used > attr.groups)
    shape_error("route", fmt::format("experts in {} equal groups, {} of them used", attr.groups, attr.groups_used),
                {logits}, at);
  const int64_t in_group = experts / attr.groups;
  if (attr.groups > 1 && attr.scoring == Scoring::sigmoid && in_group < 2)
    shape_error("route", fmt::format("two experts or more in each of {} groups", attr.groups), {logits}, at);
  if (attr.used < 1 || attr.used > attr.groups_used * in_group)
    shape_error("route", fmt::format("at least {} experts to choose from", attr.used), {logits}, at);
  std::vector<Tensor> inputs = {logits};
  if (bias) {
    if (bias.shape() != Shape{experts}) shape_error("route", "bias [expert]", {logits, bias}, at);
    inputs.push_back(bias);
  }
  const Shape out = s.with_last(attr.used);
  const auto node =
      make_node(id(Op::route), "route", std::move(inputs), {dense(DType::i32, out), dense(DType::f32, out)}, attr, at);
  return {{node, 0}, {node, 1}};
}

}  // namespace consonant
