// SPDX-License-Identifier: Apache-2.0
#include "graph/views.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace consonant {

namespace {

const Output& output_of(const Tensor& x) { return x.node->outputs[static_cast<size_t>(x.output)]; }

Tensor view(std::string_view label, const Tensor& x, const Shape& shape, std::initializer_list<int64_t> strides,
            int64_t offset, Location at) {
  Output out;
  out.type = x.type();
  out.shape = shape;
  std::copy(strides.begin(), strides.end(), out.strides.begin());
  out.alias = 0;
  out.offset = offset;
  return {make_node(op_view, label, {x}, {out}, {}, at), 0};
}

}  // namespace

Tensor merge_rows(Tensor x, Location at) {
  const Shape& s = x.shape();
  const Output& o = output_of(x);
  if (s.rank() != 3 || s.axis() != Axis::fixed || o.strides[0] != s[1] * o.strides[1])
    shape_error("merge_rows", "groups of a fixed size that lie one after another", {x}, at);
  return view("merge_rows", x, {s[0] * s[1], s[2]}, {o.strides[1], o.strides[2]}, 0, at);
}

Tensor part_of_rows(Tensor x, int64_t first, int64_t count, Location at) {
  const Shape& s = x.shape();
  const Output& o = output_of(x);
  if (s.rank() != 2 || s.axis() != Axis::fixed || first < 0 || count < 0 || first > s[0] - count)
    shape_error("part_of_rows", fmt::format("{} rows from {} on of a fixed size", count, first), {x}, at);
  return view("part_of_rows", x, {count, s[1]}, {o.strides[0], o.strides[1]}, first * o.strides[0], at);
}

Tensor as_vector(Tensor x, Location at) {
  const Shape& s = x.shape();
  const Output& o = output_of(x);
  if (s.rank() != 2 || s.axis() != Axis::fixed || (s[0] != 1 && s[1] != 1))
    shape_error("as_vector", "one row or one column of a fixed size", {x}, at);
  const bool row = s[0] == 1;
  return view("as_vector", x, {row ? s[1] : s[0]}, {row ? o.strides[1] : o.strides[0]}, 0, at);
}

}  // namespace consonant
