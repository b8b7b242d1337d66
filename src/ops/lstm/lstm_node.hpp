// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/work.hpp"
#include "tensor/convert.hpp"
#include "tensor/packed.hpp"

namespace consonant {

inline Refusal lstm_can_run(const Node& node) {
  Refusal refusal = wants_matrix(node.inputs[1], "w");
  if (refusal) return refusal;
  if (node.inputs[1].node->op == op_view) return {"w is a view"};
  Node others;  // all but w
  others.inputs = {node.inputs[0], node.inputs[2], node.inputs[3]};
  others.outputs = node.outputs;
  refusal = wants_float_rows(others);
  others.inputs.clear();
  return refusal;
}

inline void decode_weight_row(const View& w, int64_t row, float* to) {
  if (w.layout == Layout::rows8)
    decode_packed_row(packed_shape(w.type, w.shape[0], w.shape[1]), w.data, row, to);
  else
    decode_row(w.type, w.data + row * row_bytes(w.type, w.shape[1]), to, w.shape[1]);
}

}  // namespace consonant
