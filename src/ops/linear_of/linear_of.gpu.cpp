// SPDX-License-Identifier: Apache-2.0
// The experts' products, in two forms with the same bits (ops/linear/product_gpu.hpp):
//   few tokens   a block has some rows of the expert of one (token, slot) pair: bound by reading the chosen experts
//   many tokens  pairs are grouped by expert, and each tile of a group is multiplied as many tokens are: bound by
//                float32 multiplications, or by reading all experts once where their groups are small
// Which one follows from sizes alone: the host never sees who was chosen.
#include "ops/gated/gated.hpp"
#include "ops/linear/few_tokens_gpu.hpp"
#include "ops/linear/many_tokens_gpu.hpp"
#include "ops/linear_of/groups_gpu.hpp"
#include "ops/linear_of/linear_of_node.hpp"
#include "ops/matrix_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel gated_gpu();

namespace {

// Where pairs find what is theirs.
struct Pairs {
  Rows<const int32_t> ids;
  int64_t used;
  int64_t x_slot, y_slot;  // strides of a token's slots
  int64_t w_expert;        // words from one expert to the next
};

template <DType Type>
GPU_KERNEL void few_pairs(Product<Type> p, FewTokens few, Pairs pairs) {
  gpu::wait_for_inputs();
  const int64_t token = gpu::block_y() / pairs.used, slot = gpu::block_y() % pairs.used;
  p.w = p.w + pairs.ids.row(token)[slot] * pairs.w_expert;
  p.x = p.x + (token * p.x_token + slot * pairs.x_slot);
  p.y = p.y + (token * p.y_token + slot * pairs.y_slot);
  p.tokens = 1;
  multiply_few<Type, 1>(p, few, 0);
}

// A product whose tokens are the pairs of a tile.
template <DType Type>
struct TileProduct : Product<Type> {
  Pairs pairs;
  gpu::Shared<int32_t> pair;  // [tile_side]

  GPU_FN Four activations(int64_t i, int64_t e) const {
    if (i >= this->tokens) return {{0, 0, 0, 0}};
    const int64_t token = pair[i] / pairs.used, slot = pair[i] % pairs.used;
    Product<Type> one = *this;
    one.x = this->x + (token * this->x_token + slot * pairs.x_slot);
    return one.activations(0, e);
  }
  GPU_FN void finish(int64_t i, int64_t row, float sum) const {
    if (i >= this->tokens || row >= this->rows) return;
    const int64_t token = pair[i] / pairs.used, slot = pair[i] % pairs.used;
    this->y[token * this->y_token + slot * pairs.y_slot + row * this->y_row] = sum;
  }
};

template <DType Type>
GPU_KERNEL void many_pairs(Product<Type> p, Pairs pairs, gpu::Ptr<const int32_t> order, gpu::Ptr<const int32_t> tiles,
                           int64_t tile_count) {
  GPU_SHARED(int32_t, pair, tile_side);
  const auto tile = tiles + gpu::block() % tile_count * 4;
  const int64_t expert = tile[0], first = tile[1], count = tile[2];
  if (count == 0) return;
  for (int i = gpu::thread(); i < count; i += tile_threads) pair[i] = order[first + i];
  gpu::sync();
  TileProduct<Type> of_tile = {{p}, pairs, pair};
  of_tile.w = p.w + expert * pairs.w_expert;
  of_tile.tokens = count;
  multiply_tile<Type>(of_tile, 0, gpu::block() / tile_count * tile_side);
}

struct Sizes {
  int64_t tokens, used, experts, rows;

  explicit Sizes(const Node& node) : Sizes(node.inputs[0].shape(), node.inputs[2].shape()) {}
  Sizes(const Shape& ids, const Shape& w) : tokens(ids[0]), used(ids[1]), experts(w[0]), rows(w[1]) {}
  int64_t pairs() const { return tokens * used; }
  // Up to here most of what was chosen was chosen by one token alone.
  bool is_few() const { return pairs() <= std::min<int64_t>(experts, 65535) || tokens == 1; }
};

Refusal can_run(const Node& node, const Limits& limits) {
  const Sizes s(node);
  const Tensor& w = node.inputs[2];
  if (Refusal refusal = wants_experts(node)) return refusal;
  if (node.inputs[1].type() != DType::f32) return {fmt::format("x is {}, not f32", name(node.inputs[1].type()))};
  if (node.attr<LinearOfAttr>().gated && s.pairs() > limits.grid)
    return {fmt::format("{} has more than {} rows", to_string(node.outputs[0].shape), limits.grid)};
  if (w.shape()[2] > INT32_MAX || s.pairs() > INT32_MAX) return {fmt::format("{} is too large", to_string(w.shape()))};
  if (s.used > 65535) return {fmt::format("{} experts of a token are more than 65535", s.used)};
  if (s.experts * 4 > limits.shared_bytes / 2)
    return {fmt::format("{} experts can't be counted in {} bytes of shared memory", s.experts, limits.shared_bytes)};
  if (most_tiles(s.pairs(), s.experts, tile_side) > limits.grid / std::max<int64_t>(1, ceil_div(s.rows, 8)))
    return {fmt::format("{} has more tiles than a grid has blocks", to_string(node.outputs[0].shape))};
  return {};
}

// A gated node's products lie before the groups.
int64_t product_bytes(const Sizes& s) { return round_up(s.pairs() * s.rows * 4, 256); }

int64_t scratch_bytes(const Node& node, const Limits&) {
  const Sizes s(node);
  if (s.pairs() == 0) return 0;
  return group_bytes(s.pairs(), s.experts, tile_side) + (node.attr<LinearOfAttr>().gated ? 2 * product_bytes(s) : 0);
}

template <DType Type>
void launch_type(const View& ids, const View& x, const View& w, const View& y, Accelerator& device,
                 std::byte* scratch) {
  const Sizes s(ids.shape, w.shape);
  if (s.pairs() == 0 || s.rows == 0) return;
  const bool own = x.shape.rank() == 3;
  Product<Type> p = {};
  p.tokens = s.tokens, p.rows = s.rows, p.k = x.last();
  p.x = pointer<const float>(x), p.x_token = x.strides[0], p.x_element = 1;
  p.x_whole = p.k % 4 == 0 && p.x_token % 4 == 0 && (!own || x.strides[1] % 4 == 0) && aligned(x.data, 16);
  set_weights(p, w);
  p.chain_bits = chain_bits_of(p.rows, p.k);
  p.y = pointer<float>(y), p.y_token = y.strides[0], p.y_row = y.strides[2];
  const int64_t w_expert = has_blocks(Type) ? packed_shape(Type, p.rows, p.k).matrix_bytes() / 4 : p.rows * p.k;
  if (!has_blocks(Type)) p.w_whole = p.w_whole && w_expert % ProductUnit<Type>::size == 0;
  const Pairs pairs = {rows_of<const int32_t>(ids), s.used, own ? x.strides[1] : 0, y.strides[1], w_expert};
  if (s.is_few()) {
    const FewTokens few = plan_few<Type, 1>(p, 1, device.limits());
    return gpu::launch_early<few_pairs<Type>, few_threads>(device, {ceil_div(p.rows, few.rows), s.pairs()},
                                                           few.shared_bytes, p, few, pairs);
  }
  const PairGroups groups = groups_of(ids, s.experts, tile_side, scratch);
  launch_groups(device, groups);
  const gpu::Ptr<const int32_t> order = groups.order, tiles = groups.tiles;
  gpu::launch<many_pairs<Type>, tile_threads>(device, {groups.tile_count * ceil_div(p.rows, tile_side)}, 0, p, pairs,
                                              order, tiles, groups.tile_count);
}

void launch_product(const Args& args, size_t w, const View& y, Accelerator& device, std::byte* scratch) {
  with_matrix_type(args.in[w].type, [&](auto type) {
    launch_type<decltype(type)::value>(args.in[0], args.in[1], args.in[w], y, device, scratch);
  });
}

void launch(const Args& args, Accelerator& device, std::byte* scratch) {
  const LinearOfAttr& attr = args.attr<LinearOfAttr>();
  if (!attr.gated) return launch_product(args, 2, args.out[0], device, scratch);
  const int64_t bytes = product_bytes(Sizes(args.in[0].shape, args.in[2].shape));
  View products[2] = {args.out[0], args.out[0]};
  for (size_t i = 0; i < 2; ++i) {
    products[i].data = scratch + static_cast<int64_t>(i) * bytes;
    products[i].strides = dense(DType::f32, products[i].shape).strides;
    launch_product(args, 2 + i, products[i], device, scratch + 2 * bytes);
  }
  Node node;
  node.op = id(Op::gated), node.attributes = GatedAttr{attr.activation};
  gated_gpu().launch({&node, products, args.out}, device, nullptr);
}

}  // namespace

GpuKernel linear_of_gpu() { return {"linear_of", Op::linear_of, can_run, scratch_bytes, launch}; }

}  // namespace consonant::GPU_BUILD
