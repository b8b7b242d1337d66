// SPDX-License-Identifier: Apache-2.0
// The kernels of linear, a head's product in each block (ops/linear/product_gpu.hpp): with few tokens bound by reading
// the weights once, with many by the multiplications.
#include "ops/linear_heads/linear_heads.hpp"
#include "ops/kv_cache.hpp"
#include "ops/linear/few_tokens_gpu.hpp"
#include "ops/linear/many_tokens_gpu.hpp"
#include "ops/matrix_gpu.hpp"
#include "ops/work.hpp"

namespace consonant::GPU_BUILD {

namespace {

// Up to here reading the weights again for each four tokens costs less than a mostly empty tile.
constexpr int64_t most_few = 16;

// The product of head 0, and what lies between its parts and those of the next.
template <DType Type>
struct HeadProducts {
  Product<Type> first;
  int64_t x_head, w_head, y_head;

  GPU_FN Product<Type> of(int64_t head) const {
    Product<Type> p = first;
    p.x = p.x + head * x_head, p.w = p.w + head * w_head, p.y = p.y + head * y_head;
    return p;
  }
};

template <DType Type, int Tokens>
GPU_KERNEL void few_heads(HeadProducts<Type> heads, FewTokens few) {
  multiply_few<Type, Tokens>(heads.of(gpu::block_z()), few, gpu::block_y() * Tokens);
}

template <DType Type>
GPU_KERNEL void many_heads(HeadProducts<Type> heads, int64_t token_tiles) {
  multiply_tile<Type>(heads.of(gpu::block_y()), gpu::block() % token_tiles * tile_side,
                      gpu::block() / token_tiles * tile_side);
}

template <DType Type>
HeadProducts<Type> products_of(const View& x, const View& w, const View& y) {
  HeadProducts<Type> heads = {};
  Product<Type>& p = heads.first;
  p.tokens = x.shape[0], p.rows = w.shape[1], p.k = x.shape[2];
  p.x = pointer<const float>(x), p.x_token = x.strides[0], p.x_element = 1;
  p.x_whole = p.k % 4 == 0 && p.x_token % 4 == 0 && x.strides[1] % 4 == 0 && aligned(x.data, 16);
  set_weights(p, w);
  p.chain_bits = chain_bits_of(p.rows, p.k);
  p.y = pointer<float>(y), p.y_token = y.strides[0], p.y_row = 1;
  heads.x_head = x.strides[1], heads.y_head = y.strides[1];
  heads.w_head = has_blocks(Type) ? packed_shape(Type, p.rows, p.k).matrix_bytes() / 4 : p.rows * p.k;
  if (!has_blocks(Type)) p.w_whole = p.w_whole && heads.w_head % ProductUnit<Type>::size == 0;
  return heads;
}

template <DType Type, int Tokens>
void launch_few(Accelerator& device, const HeadProducts<Type>& heads, int64_t count) {
  const Product<Type>& p = heads.first;
  const FewTokens few = plan_few<Type, Tokens>(p, 1, device.limits());
  gpu::launch_early<few_heads<Type, Tokens>, few_threads>(
      device, {ceil_div(p.rows, few.rows), ceil_div(p.tokens, Tokens), count}, few.shared_bytes, heads, few);
}

template <DType Type>
void launch_type(const Args& args, Accelerator& device) {
  const int64_t count = args.in[0].shape[1];
  const HeadProducts<Type> heads = products_of<Type>(args.in[0], args.in[1], args.out[0]);
  const Product<Type>& p = heads.first;
  if (p.tokens == 0 || p.rows == 0 || count == 0) return;
  if (p.tokens == 1) return launch_few<Type, 1>(device, heads, count);
  if (p.tokens <= most_few) return launch_few<Type, 4>(device, heads, count);
  const int64_t token_tiles = ceil_div(p.tokens, tile_side);
  gpu::launch<many_heads<Type>, tile_threads>(device, {token_tiles * ceil_div(p.rows, tile_side), count}, 0, heads,
                                              token_tiles);
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  with_matrix_type(args.in[1].type, [&](auto type) { launch_type<decltype(type)::value>(args, device); });
}

Refusal can_run(const Node& node, const Limits& limits) {
  if (Refusal refusal = wants_head_rows(node.inputs[0], "x")) return refusal;
  if (Refusal refusal = wants_matrix(node.inputs[1], "w")) return refusal;
  const Shape &w = node.inputs[1].shape(), &y = node.outputs[0].shape;
  if (w[2] > INT32_MAX) return {fmt::format("rows of {} are too long", to_string(w))};
  if (y[1] > limits.grid_yz) return {fmt::format("{} heads are more than a grid has rows", y[1])};
  if (ceil_div(y[0], tile_side) > limits.grid / std::max<int64_t>(1, ceil_div(y[2], 8)))
    return {fmt::format("{} has more tiles than a grid has blocks", to_string(y))};
  return {};
}

}  // namespace

GpuKernel linear_heads_gpu() { return {"linear_heads", Op::linear_heads, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
