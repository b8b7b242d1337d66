// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.hpp"
#include "ops/kernel.hpp"
#include "ops/work.hpp"
#include "tensor/activations.hpp"
#include "tensor/convert.hpp"
#include "tensor/packed.hpp"

namespace consonant {

namespace {

constexpr int64_t rows_a_chunk = 16;

Refusal can_run(const Node& node) {
  const DType x = node.inputs[0].type();
  if (Refusal refusal = wants_matrix(node.inputs[1], "w")) return refusal;
  if (node.inputs[1].node->op == op_view) return {"w is a view"};
  if (x != DType::f32 && x != DType::q8_x && x != DType::q16_x) return {fmt::format("x is {}", name(x))};
  if (node.attr<LinearAttr>().residual && node.inputs.back().type() != DType::f32)
    return {fmt::format("the residual is {}, not f32", name(node.inputs.back().type()))};
  return {};
}

Work work(const Args& args) {
  const View& w = args.in[1];
  return {ceil_div(w.shape[0], rows_a_chunk), w.shape[1] * static_cast<int64_t>(sizeof(float))};
}

void decode(const View& w, int64_t row, float* to) {
  if (w.layout == Layout::rows8)
    decode_packed_row(packed_shape(w.type, w.shape[0], w.shape[1]), w.data, row, to);
  else
    decode_row(w.type, w.data + row * row_bytes(w.type, w.shape[1]), to, w.shape[1]);
}

double dot(const View& x, int64_t token, const float* w) {
  const int64_t k = x.shape[1];
  double sum = 0;
  if (x.type != DType::f32) {
    const int parts = activation_parts(x.type);
    const ActivationRow row = ActivationRow::at(x.data + token * ActivationRow::bytes(x.strides[0], parts), k, parts);
    for (int64_t i = 0; i < k; ++i) sum += double{row[i]} * w[i];
  } else {
    const float* row = x.as<float>() + token * x.strides[0];
    for (int64_t i = 0; i < k; ++i) sum += double{row[i * x.strides[1]]} * w[i];
  }
  return sum;
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const LinearAttr& attr = args.attr<LinearAttr>();
  auto* row = reinterpret_cast<float*>(scratch);
  for (int64_t r = chunk * rows_a_chunk; r < std::min(w.shape[0], (chunk + 1) * rows_a_chunk); ++r) {
    decode(w, r, row);
    for (int64_t t = 0; t < x.shape[0]; ++t) {
      double sum = dot(x, t, row);
      if (attr.bias) sum += args.in[2].as<float>()[r];
      if (attr.residual) {
        const View& residual = args.in[attr.bias ? 3 : 2];
        sum += residual.as<float>()[t * residual.strides[0] + r * residual.strides[1]];
      }
      y.as<float>()[t * y.strides[0] + r * y.strides[1]] = static_cast<float>(sum);
    }
  }
}

}  // namespace

extern const Kernel linear_ref = {DeviceKind::reference, Op::linear, can_run, work, run};

}  // namespace consonant
