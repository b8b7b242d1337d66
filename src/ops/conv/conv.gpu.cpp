// SPDX-License-Identifier: Apache-2.0
// The product of ops/linear for many tokens, whose tokens are windows of x: its inputs are read where they lie.
#include "ops/conv/conv.hpp"

#include <fmt/format.h>

#include "ops/linear/many_tokens_gpu.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

template <DType Type>
struct Windows : Product<Type> {
  int64_t n = 0, tap_stride = 0;  // of a tap; x_token is that of a window

  // Elements e ... e + 3 of a window, zeros past its end.
  GPU_FN Four activations(int64_t token, int64_t e) const {
    Four four = {{0, 0, 0, 0}};
    if (token >= this->tokens || e >= this->k) return four;
    const auto from = this->x + token * this->x_token;
    int64_t tap = e / n, c = e - tap * n;
    if (this->x_whole) {
      const gpu::U4 v = gpu::load16(from + (tap * tap_stride + c));
      return {{gpu::from_bits(v.x), gpu::from_bits(v.y), gpu::from_bits(v.z), gpu::from_bits(v.w)}};
    }
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (e + i < this->k) four.x[i] = from[tap * tap_stride + c];
      if (++c == n) ++tap, c = 0;
    }
    return four;
  }
};

template <DType Type>
GPU_KERNEL void convolve(Windows<Type> p, int64_t token_tiles) {
  multiply_tile<Type>(p, gpu::block() % token_tiles * tile_side, gpu::block() / token_tiles * tile_side);
}

template <DType Type>
Windows<Type> windows_of(const Args& args) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  const auto& a = args.attr<ConvAttr>();
  Windows<Type> p = {};
  p.n = x.last(), p.tap_stride = a.dilation * x.strides[0];
  p.tokens = y.shape[0], p.rows = w.shape[0], p.k = w.shape[1];
  p.x = pointer<const float>(x), p.x_token = a.stride * x.strides[0], p.x_element = 1;
  p.x_whole = p.n % 4 == 0 && x.strides[0] % 4 == 0 && aligned(x.data, 16);
  set_weights(p, w);
  p.chain_bits = chain_bits_of(p.rows, p.k);
  p.has_bias = a.bias, p.has_residual = a.residual;
  if (a.bias) p.bias = pointer<const float>(args.in[2]), p.bias_stride = args.in[2].strides[0];
  if (a.residual) {
    const View& residual = args.in[a.bias ? 3 : 2];
    p.residual = pointer<const float>(residual);
    p.residual_token = residual.strides[0], p.residual_row = residual.strides[1];
  }
  p.y = pointer<float>(y), p.y_token = y.strides[0], p.y_row = y.strides[1];
  return p;
}

template <DType Type>
void launch_type(const Args& args, Accelerator& device) {
  const Windows<Type> p = windows_of<Type>(args);
  if (p.tokens == 0 || p.rows == 0) return;
  const int64_t tiles = ceil_div(p.tokens, tile_side);
  gpu::launch<convolve<Type>, tile_threads>(device, {tiles * ceil_div(p.rows, tile_side)}, 0, p, tiles);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  switch (args.in[1].type) {
    case DType::f16:
      return launch_type<DType::f16>(args, device);
    case DType::bf16:
      return launch_type<DType::bf16>(args, device);
    default:
      return launch_type<DType::f32>(args, device);  // can_run refuses the rest
  }
}

Refusal can_run(const Node& node, const Limits& limits) {
  const Shape& y = node.outputs[0].shape;
  if (Refusal refusal = wants_matrix(node.inputs[1], "w")) return refusal;
  if (node.inputs[1].node->op == op_view) return {"w is a view"};
  const DType type = node.inputs[1].type();
  if (type != DType::f32 && type != DType::f16 && type != DType::bf16)
    return {fmt::format("w is {}, not of plain numbers", name(type))};
  if (ceil_div(y[0], tile_side) > limits.grid / std::max<int64_t>(1, ceil_div(y[1], tile_side)))
    return {fmt::format("{} has more tiles than a grid has blocks", to_string(y))};
  Node rows = node;
  rows.inputs.erase(rows.inputs.begin() + 1);
  return wants_float_rows(rows);
}

}  // namespace

GpuKernel conv_gpu() { return {"conv", Op::conv, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
