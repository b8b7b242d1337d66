// SPDX-License-Identifier: Apache-2.0
// The product of ops/linear whose tokens are windows of x: its inputs are read where they lie, tap by tap.
#include <fmt/format.h>

#include "base/checked.hpp"
#include "ops/conv/conv.hpp"
#include "ops/linear/product.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

Product product_of(const Args& args) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const auto& a = args.attr<ConvAttr>();
  constexpr auto size = static_cast<int64_t>(sizeof(float));
  Product p;
  p.weights = packed_shape(w.type, w.shape[0], w.shape[1]);
  (w.layout == Layout::rows8 ? p.packed : p.plain) = w.data;
  p.x = x.data;
  p.x_stride = a.stride * x.strides[0] * size;
  p.taps = a.kernel, p.tap_stride = a.dilation * x.strides[0] * size;
  p.tokens = y.shape[0];
  p.y = y.as<float>(), p.y_stride = y.strides[0];
  if (a.bias) p.bias = args.in[2].as<float>();
  if (a.residual) {
    const View& added = args.in[a.bias ? 3 : 2];
    p.residual = added.as<float>(), p.residual_stride = added.strides[0];
  }
  return p;
}

Work work(const Args& args) {
  const Product p = product_of(args);
  const Cut cut(p);
  return {cut.token_blocks * cut.group_blocks, float_scratch(p, cut)};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const Product p = product_of(args);
  multiply_float(p, Cut(p).patch(p, chunk), scratch);
}

// Panels of decoded weights end with a tap, and blocks don't.
Refusal can_run(const Node& node) {
  const Tensor& w = node.inputs[1];
  if (Refusal refusal = wants_matrix(w, "w")) return refusal;
  if (w.node->op == op_view) return {"w is a view"};
  if (!is_float(w.type())) return {fmt::format("w is {}, not of plain numbers", name(w.type()))};
  Node rows = node;
  rows.inputs.erase(rows.inputs.begin() + 1);
  return wants_float_rows(rows);
}

}  // namespace

extern const Kernel conv_cpu = {DeviceKind::cpu, Op::conv, can_run, work, run};

}  // namespace consonant
