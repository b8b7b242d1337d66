// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "ops/work.hpp"
#include "tensor/convert.hpp"

namespace consonant {

// Row `i` of x as floats: a value's row, or a weight's, decoded; zeros for a negative one.
inline void gather_row(const View& x, int64_t i, float* to) {
  const int64_t columns = x.last();
  if (i < 0)
    std::fill_n(to, columns, 0.0f);
  else if (x.layout == Layout::rows8)
    decode_packed_row(packed_shape(x.type, x.shape[0], columns), x.data, i, to);
  else
    decode_row(x.type, x.data + row_bytes(x.type, x.strides[0]) * i, to, columns);
}

inline Refusal wants_rows(const Node& node) {
  const Tensor& x = node.inputs[0];
  const Output& value = x.node->outputs[static_cast<size_t>(x.output)];
  if (value.shape.last() > 1 && value.strides[1] != 1) return {"the rows of x aren't contiguous"};
  return wants_matrix(x, "x");
}

}  // namespace consonant
