// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/conv/conv.hpp"
#include "ops/work.hpp"
#include "tensor/convert.hpp"
#include "tensor/packed.hpp"

namespace consonant {

namespace {

// A chunk an output.
Work work(const Args& args) { return {args.in[1].shape[0], args.in[1].shape[1] * static_cast<int64_t>(sizeof(float))}; }

void run(const Args& args, int64_t o, std::byte* scratch) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const auto& a = args.attr<ConvAttr>();
  const int64_t n = x.last(), taps = a.kernel;
  auto* row = reinterpret_cast<float*>(scratch);
  if (w.layout == Layout::rows8)
    decode_packed_row(packed_shape(w.type, w.shape[0], w.shape[1]), w.data, o, row);
  else
    decode_row(w.type, w.data + o * row_bytes(w.type, w.shape[1]), row, w.shape[1]);
  for (int64_t t = 0; t < y.rows(); ++t) {
    double sum = 0;
    for (int64_t k = 0; k < taps; ++k) {
      const float* from = x.row<float>(t * a.stride + k * a.dilation);
      for (int64_t c = 0; c < n; ++c) sum += double{row[k * n + c]} * from[c];
    }
    if (a.bias) sum += args.in[2].as<float>()[o];
    if (a.residual) sum += args.in[a.bias ? 3 : 2].row<float>(t)[o];
    y.row<float>(t)[o] = static_cast<float>(sum);
  }
}

Refusal can_run(const Node& node) {
  if (!is_float(node.inputs[1].type())) return {"w isn't of plain numbers"};
  if (Refusal refusal = wants_matrix(node.inputs[1], "w")) return refusal;
  Node rows = node;
  rows.inputs.erase(rows.inputs.begin() + 1);
  return wants_float_rows(rows);
}

}  // namespace

extern const Kernel conv_ref = {DeviceKind::reference, Op::conv, can_run, work, run};

}  // namespace consonant
