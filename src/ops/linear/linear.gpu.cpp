// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ops/linear/few_tokens_gpu.hpp"
#include "ops/linear/linear.hpp"
#include "ops/linear/many_tokens_gpu.hpp"
#include "ops/matrix_gpu.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

// Up to here reading the weights again for each four tokens costs less than a mostly empty tile.
constexpr int64_t most_few = 16;

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& y = node.outputs[0].shape;
  if (Refusal refusal = wants_matrix(node.inputs[1], "w")) return refusal;
  if (node.inputs[1].node->op == op_view) return {"w is a view"};
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (i != 1 && node.inputs[i].type() != DType::f32)
      return {fmt::format("input {} is {}, not f32", i, name(node.inputs[i].type()))};
  if (node.inputs[1].shape()[1] > INT32_MAX)
    return {fmt::format("rows of {} are too long", to_string(node.inputs[1].shape()))};
  if (ceil_div(y[0], tile_side) > limits.grid / std::max<int64_t>(1, ceil_div(y[1], 8)))
    return {fmt::format("{} has more tiles than a grid has blocks", to_string(y))};
  return {};
}

template <DType Type>
Product<Type> product_of(const Args& args) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const LinearAttr& attr = args.attr<LinearAttr>();
  Product<Type> p = {};
  p.tokens = x.shape[0], p.rows = w.shape[0], p.k = x.shape[1];
  p.x = pointer<const float>(x), p.x_token = x.strides[0], p.x_element = x.strides[1];
  p.x_whole = p.x_element == 1 && p.k % 4 == 0 && p.x_token % 4 == 0 && aligned(x.data, 16);
  set_weights(p, w);
  p.chain_bits = chain_bits_of(p.rows, p.k);
  p.has_bias = attr.bias, p.has_residual = attr.residual;
  if (attr.bias) p.bias = pointer<const float>(args.in[2]), p.bias_stride = args.in[2].strides[0];
  if (attr.residual) {
    const View& residual = args.in[attr.bias ? 3 : 2];
    p.residual = pointer<const float>(residual);
    p.residual_token = residual.strides[0], p.residual_row = residual.strides[1];
  }
  p.y = pointer<float>(y), p.y_token = y.strides[0], p.y_row = y.strides[1];
  return p;
}

template <DType Type, int Tokens>
void launch_few(Accelerator& device, const Product<Type>& p) {
  // Several rounds share the copy of x, as long as all processors have something to do.
  const int64_t busy = ceil_div(p.rows, rows_a_round(p)) / std::max(1, 3 * device.limits().processors);
  const FewTokens few =
      plan_few<Type, Tokens>(p, static_cast<int>(std::clamp<int64_t>(busy, 1, 4 / Tokens)), device.limits());
  gpu::launch_early<few_tokens<Type, Tokens>, few_threads>(
      device, {ceil_div(p.rows, few.rows), ceil_div(p.tokens, Tokens)}, few.shared_bytes, p, few);
}

template <DType Type>
void launch_type(const Args& args, Accelerator& device) {
  const Product<Type> p = product_of<Type>(args);
  if (p.tokens == 0 || p.rows == 0) return;
  if (p.tokens == 1) return launch_few<Type, 1>(device, p);
  if (p.tokens <= most_few) return launch_few<Type, 4>(device, p);
  const int64_t token_tiles = ceil_div(p.tokens, tile_side);
  gpu::launch<many_tokens<Type>, tile_threads>(device, {token_tiles * ceil_div(p.rows, tile_side)}, 0, p, token_tiles);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  with_matrix_type(args.in[1].type, [&](auto type) { launch_type<decltype(type)::value>(args, device); });
}

}  // namespace

GpuKernel linear_gpu() { return {"linear", Op::linear, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
