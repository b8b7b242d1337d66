// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/linear.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.hpp"
#include "ops/linear/product.hpp"
#include "ops/work.hpp"
#include "tensor/activations.hpp"

namespace consonant {

Product::Product(const Args& args) : weights(packed_shape(args.in[1].type, args.in[1].shape[0], args.in[1].shape[1])) {
  const View &from = args.in[0], &w = args.in[1], &to = args.out[0];
  (w.layout == Layout::rows8 ? packed : plain) = w.data;
  x = from.data;
  x_is_int8 = from.type != DType::f32;
  parts = activation_parts(from.type);
  x_stride = x_is_int8 ? ActivationRow::bytes(from.strides[0], parts) : from.strides[0] * 4;
  tokens = from.shape[0];
  y = to.as<float>();
  y_stride = to.strides[0];
  const LinearAttr& attr = args.attr<LinearAttr>();
  if (attr.bias) bias = args.in[2].as<float>();
  if (attr.residual) {
    const View& added = args.in[attr.bias ? 3 : 2];
    residual = added.as<float>();
    residual_stride = added.strides[0];
  }
}

// A block of tokens stays in the second cache while the groups of the chunk pass by. A chunk is a few microseconds: a
// byte of weights costs a quarter of a nanosecond from memory, as do about 16 products.
Cut::Cut(const Product& p) {
  constexpr int64_t block_bytes = 256 << 10, chunk_cost = 48 << 10, products_a_byte = 16;
  // Rows of overlapping windows share most of their bytes.
  const int64_t whole = 4 * p.weights.k, own = p.x_stride > 0 ? std::min(whole, p.x_stride) : whole;
  const int64_t row = std::max<int64_t>(1, p.x_is_int8 ? p.parts * p.weights.k : own);
  token_block = std::clamp<int64_t>(block_bytes / row / 12 * 12, 12, most_tokens);
  token_blocks = ceil_div(p.tokens, token_block);
  const int64_t products = 8 * p.weights.k * p.parts * std::min(p.tokens, token_block);
  const int64_t cost = std::max<int64_t>(1, p.weights.group_bytes + products / products_a_byte);
  // What is known of a block of tokens is gathered anew for each chunk: sixteen groups make that a small part of its
  // work.
  const int64_t least = p.x_is_int8 && p.tokens > 4 ? 16 : 1;
  group_block = std::min(p.weights.groups(), std::max<int64_t>(least, ceil_div(chunk_cost, cost)));
  group_block = std::max<int64_t>(1, group_block);
  if (!p.x_is_int8) group_block = (group_block + 1) / 2 * 2;  // its tiles have two groups
  group_blocks = ceil_div(p.weights.groups(), group_block);
}

Patch Cut::patch(const Product& p, int64_t chunk) const {
  const int64_t group = chunk % group_blocks * group_block, token = chunk / group_blocks * token_block;
  return {group, std::min(group + group_block, p.weights.groups()), token, std::min(token + token_block, p.tokens)};
}

namespace {

bool contiguous_rows(const Tensor& x) {
  const Output& value = x.node->outputs[static_cast<size_t>(x.output)];
  return value.shape.last() <= 1 || value.strides[1] == 1;
}

Refusal can_run(const Node& node) {
  const Tensor &x = node.inputs[0], &w = node.inputs[1];
  if (Refusal refusal = wants_matrix(w, "w")) return refusal;
  if (w.node->op == op_view) return {"w is a view"};
  if (x.type() != DType::f32 && x.type() != DType::q8_x && x.type() != DType::q16_x)
    return {fmt::format("x is {}", name(x.type()))};
  if (x.type() != DType::f32 && !is_quantized(w.type()))
    return {fmt::format("x in {} times w in {}", name(x.type()), name(w.type()))};
  if (!contiguous_rows(x)) return {"the rows of x aren't contiguous"};
  for (size_t i = 2; i < node.inputs.size(); ++i) {
    const Tensor& added = node.inputs[i];
    if (added.node->op == op_weight && added.shape().rank() == 1) continue;  // vectors are float32 on every device
    if (added.type() != DType::f32) return {fmt::format("input {} is {}, not f32", i, name(added.type()))};
    if (added.shape().rank() == 2 && !contiguous_rows(added))
      return {fmt::format("the rows of input {} aren't contiguous", i)};
  }
  return {};
}

Work work(const Args& args) {
  const Product p(args);
  const Cut cut(p);
  return {cut.token_blocks * cut.group_blocks, p.x_is_int8 ? int8_scratch(p, cut) : float_scratch(p, cut)};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const Product p(args);
  const Patch patch = Cut(p).patch(p, chunk);
  if (p.x_is_int8)
    multiply_int8(p, patch, scratch);
  else
    multiply_float(p, patch, scratch);
}

}  // namespace

extern const Kernel linear_cpu = {DeviceKind::cpu, Op::linear, can_run, work, run};

}  // namespace consonant
