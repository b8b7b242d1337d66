// SPDX-License-Identifier: Apache-2.0
#pragma once

// Experts' products on CUDA's tensor cores, in three forms that give a pair of token and slot the same bits
// (ops/linear/mma_some.hpp has those of mma_few.hpp):
//   few pairs    one launch: a block has some tiles of the expert of one pair, or of its two that are gated. Bound by
//                reading the chosen experts, each as often as it was chosen
//   some pairs   pairs are sorted by expert first, and a block has up to 4 of the same one: most experts are read once
//   many pairs   pairs are sorted by expert, their records made in that order, and tiles of 64 rows by 8, 16 or 32
//                pairs of one expert multiplied. Bound by reading all experts once while groups are small, and by the
//                tensor cores from some dozen pairs a group on
// No launch depends on who was chosen.
#include <algorithm>

#include "ops/gated/gated.hpp"
#include "ops/linear/mma_launch.hpp"
#include "ops/linear_of/experts_forms.hpp"
#include "ops/linear_of/groups_gpu.hpp"
#include "ops/linear_of/linear_of.hpp"

namespace consonant::GPU_BUILD {
GpuKernel gated_gpu();
}

namespace consonant::GPU_BUILD::mma {

// Rows of pairs, [token, used, n], or of their tokens, [token, n].
template <class T>
struct PairRows {
  gpu::Ptr<T> data;
  int64_t token_stride, slot_stride;  // in elements; slot_stride 0: a token's row is that of all of its pairs
  unsigned used;

  GPU_FN gpu::Ptr<T> row(int64_t pair) const {
    const auto n = static_cast<unsigned>(pair);
    return data + ((n / used) * token_stride + (n % used) * slot_stride);
  }
};

template <class T>
PairRows<T> pair_rows(const View& v, int64_t used) {
  return {pointer<T>(v), v.strides[0], v.shape.rank() == 3 ? v.strides[1] : 0,
          static_cast<unsigned>(std::max<int64_t>(used, 1))};
}

// The sizes of a node's step, and where pairs find what is theirs.
struct Experts {
  PairRows<const int32_t> ids;
  PairRows<const float> x;
  int64_t experts, expert_bytes;  // from one expert's weights to the next
  int columns;                    // of x
  bool aligned;                   // rows of x begin at multiples of 16 bytes

  GPU_FN int64_t expert(int64_t pair) const { return ids.row(pair)[0]; }
};

template <DType Type>
Matrix<Type> first_expert(const View& w) {
  const int64_t rows = w.shape[1], columns = w.shape[2];
  const int64_t stride = is_quantized(Type) ? packed_shape(Type, rows, columns).group_bytes : columns * 2;
  return {pointer<const uint8_t>(w), stride, static_cast<int>(rows), static_cast<int>(columns)};
}

template <DType Type>
Experts experts_in(const Args& args) {
  const View &ids = args.in[0], &x = args.in[1], &w = args.in[2];
  const int64_t bytes =
      is_quantized(Type) ? packed_shape(Type, w.shape[1], w.shape[2]).matrix_bytes() : w.shape[1] * w.shape[2] * 2;
  PairRows<const int32_t> of_pairs = pair_rows<const int32_t>(ids, ids.shape[1]);
  of_pairs.slot_stride = ids.strides[1];
  return {of_pairs,           pair_rows<const float>(x, ids.shape[1]), w.shape[0], bytes, static_cast<int>(x.last()),
          has_aligned_rows(x)};
}

// ---- few pairs

template <DType Type, int Together>
GPU_KERNEL void expert_products(Matrices<Type> w, FewShape s, Experts experts, PairRows<float> y,
                                Activation activation) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  gpu::wait_for_inputs();  // before that nobody knows whose weights to ask for
  const int64_t pair = gpu::block_y(), at = experts.expert(pair) * experts.expert_bytes;
  GPU_UNROLL
  for (int i = 0; i < 3; ++i) w.all[i].data = w.all[i].data + at;
  const NormedInputs inputs = {{experts.x.row(pair), 0}, {}, 0, experts.columns, experts.aligned};
  ProductOutputs outputs = {};
  outputs.y[0] = {y.row(pair), 0}, outputs.activation = activation;
  multiply_few<Type, Together, 1>(w, s, inputs, outputs, static_cast<int>(gpu::block()),
                                  static_cast<int>(gpu::blocks()), shared);
}

// The first expert's.
template <DType Type, int Together>
Matrices<Type> expert_matrices(const Args& args) {
  Matrices<Type> matrices = {};
  for (size_t i = 0; i < 3; ++i) {
    matrices.all[i] = first_expert<Type>(args.in[Together == 2 && i == 1 ? 3 : 2]);
    matrices.first[i] = i == 0 ? 0 : static_cast<int>(ceil_div(args.in[2].shape[1], 16));
  }
  return matrices;
}

template <DType Type, int Together>
void launch_few_pairs(const Args& args, const Experts& experts, Accelerator& device) {
  const View& w = args.in[2];
  const auto tiles = static_cast<int>(ceil_div(w.shape[1], 16));
  FewShape s = {1, static_cast<int>(units_of(w.shape[2])), tiles};
  const int64_t pairs = args.in[0].shape.count(), blocks = spread_few<Type, Together>(s, device.limits(), pairs);
  gpu::launch_early<expert_products<Type, Together>, few_warps * 32, few_resident>(
      device, {blocks, pairs}, s.end, expert_matrices<Type, Together>(args), s, experts,
      pair_rows<float>(args.out[0], args.in[0].shape[1]), args.attr<LinearOfAttr>().activation);
}

// ---- some pairs

constexpr int some_pairs = 4;  // of an expert in a block

// Those of a tile of pairs of one expert, as multiply_few wants them.
struct TileInputs {
  const Experts& experts;
  gpu::Ptr<const int32_t> order;  // from the tile's first pair on
  gpu::Ptr<const float> weight = nullptr;
  float epsilon = 0;
  int columns;
  bool aligned;

  GPU_FN gpu::Ptr<const float> row(int token) const { return experts.x.row(order[token]); }
};

struct TileOutputs {
  PairRows<float> y;
  gpu::Ptr<const int32_t> order;
  Activation activation;

  GPU_FN void store(int, int row, int token, float sum) const { y.row(order[token])[row] = sum; }
  GPU_FN void store_gated(int row, int token, float gate, float sum) const {
    const float active =
        activation == Activation::silu ? activated<Activation::silu>(gate) : activated<Activation::gelu>(gate);
    y.row(order[token])[row] = active * sum;
  }
};

template <DType Type, int Together>
GPU_KERNEL void expert_tiles(Matrices<Type> w, FewShape s, Experts experts, gpu::Ptr<const int32_t> tiles,
                             gpu::Ptr<const int32_t> order, PairRows<float> y, Activation activation) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  gpu::wait_for_inputs();
  const auto tile = tiles + gpu::block_y() * 4;
  const int64_t at = tile[0] * experts.expert_bytes;
  const int first = tile[1];
  s.tokens = tile[2];
  if (s.tokens == 0) return;
  GPU_UNROLL
  for (int i = 0; i < 3; ++i) w.all[i].data = w.all[i].data + at;
  const TileInputs inputs = {experts, order + first, nullptr, 0, experts.columns, experts.aligned};
  multiply_few<Type, Together, some_pairs>(w, s, inputs, TileOutputs{y, order + first, activation},
                                           static_cast<int>(gpu::block()), static_cast<int>(gpu::blocks()), shared);
}

template <DType Type, int Together>
FewShape tile_shape(int64_t rows, int64_t columns) {
  FewShape s = {some_pairs, static_cast<int>(units_of(columns)), static_cast<int>(ceil_div(rows, 16))};
  place_largest<Type, Together>(s);
  return s;
}

template <DType Type>
bool takes_tiles(const Args& args, const Limits& limits) {
  const Shape& w = args.in[2].shape;
  const int64_t memory =
      args.attr<LinearOfAttr>().gated ? tile_shape<Type, 2>(w[1], w[2]).end : tile_shape<Type, 1>(w[1], w[2]).end;
  return memory <= limits.shared_bytes && most_tiles(args.in[0].shape.count(), w[0], some_pairs) <= 65535;
}

template <DType Type, int Together>
void launch_some_pairs(const Args& args, const Experts& experts, Accelerator& device, std::byte* scratch) {
  const PairGroups groups = groups_of(args.in[0], experts.experts, some_pairs, scratch);
  launch_groups(device, groups);
  const View& w = args.in[2];
  FewShape s = tile_shape<Type, Together>(w.shape[1], w.shape[2]);
  const int64_t blocks =
      spread_few<Type, Together>(s, device.limits(), std::min(args.in[0].shape.count(), experts.experts));
  const gpu::Ptr<const int32_t> tiles = groups.tiles, order = groups.order;
  gpu::launch_early<expert_tiles<Type, Together>, few_warps * 32, few_resident>(
      device, {blocks, groups.tile_count}, s.end, expert_matrices<Type, Together>(args), s, experts, tiles, order,
      pair_rows<float>(args.out[0], args.in[0].shape[1]), args.attr<LinearOfAttr>().activation);
}

// ---- many pairs

// The pairs' activations in their sorted order, of which records are made.
struct PairInputs {
  Experts experts;
  gpu::Ptr<const int32_t> order;

  GPU_FN Four load(int place, int column) const {
    return load_four(experts.x.row(order[place]), column, experts.columns, experts.aligned);
  }
};

// Writes what belongs to a tile: pairs behind its last are another expert's.
struct PairOutputs {
  PairRows<float> y;
  gpu::Ptr<const int32_t> order;
  int end;

  GPU_FN void store(int row, int place, float sum) const {
    if (place < end) y.row(order[place])[row] = sum;
  }
};

template <DType Type, class T>
GPU_KERNEL void grouped_products(Matrix<Type> w, Records x, Experts experts, gpu::Ptr<const int32_t> tiles,
                                 int tile_count, PairOutputs outputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  gpu::wait_for_inputs();
  const auto tile = tiles + gpu::block() % tile_count * 4;
  const int expert = tile[0], first = tile[1], count = tile[2];
  if (count == 0) return;
  w.data = w.data + expert * experts.expert_bytes;
  outputs.end = first + count;
  multiply_some<Type, T>(w, x, static_cast<int>(gpu::block() / tile_count) * T::rows, first, outputs, shared);
}

inline int tile_pairs(int64_t pairs, int64_t experts) {
  const int64_t mean = pairs / std::max<int64_t>(experts, 1);
  return mean >= 14 ? 32 : mean >= 6 ? 16 : 8;
}

// Where a step's values lie in scratch memory.
template <DType Type>
struct PairScratch {
  int64_t records, undo, products, product_bytes, end;

  PairScratch(int64_t pairs, int64_t experts, int64_t rows, int64_t columns, bool gated) {
    const int64_t units = units_of(columns);
    records = round_up(group_bytes(pairs, experts, some_pairs), 256);  // the smallest tiles are the most
    undo = records + round_up(pairs * units * record_bytes<Type>, 256);
    products = undo + round_up(pairs * units * 4, 256);
    product_bytes = round_up(pairs * rows * 4, 256);
    end = products + (gated ? 2 * product_bytes : 0);
  }
};

template <DType Type, int Tokens>
void launch_grouped(const View& w, const View& y, const Records& records, const Experts& experts,
                    const PairGroups& groups, Accelerator& device) {
  using T = Small<Type, Tokens>;
  const Matrix<Type> matrix = first_expert<Type>(w);
  const gpu::Ptr<const int32_t> tiles = groups.tiles;
  gpu::launch_early<grouped_products<Type, T>, T::threads * T::split>(
      device, {ceil_div(matrix.rows, T::rows) * groups.tile_count}, split_memory<Type, T>, matrix, records, experts,
      tiles, static_cast<int>(groups.tile_count), PairOutputs{pair_rows<float>(y, experts.ids.used), groups.order, 0});
}

template <DType Type>
void launch_many_pairs(const Args& args, const Experts& experts, Accelerator& device, std::byte* scratch) {
  const View &ids = args.in[0], &w = args.in[2];
  const LinearOfAttr& attr = args.attr<LinearOfAttr>();
  const int64_t pairs = ids.shape.count(), units = units_of(w.shape[2]);
  const PairScratch<Type> at(pairs, experts.experts, w.shape[1], w.shape[2], attr.gated);
  // Larger tiles where a block has the memory.
  int tokens = tile_pairs(pairs, experts.experts);
  if (tokens == 32 && split_memory < Type, Small < Type, 32 >>> device.limits().shared_bytes) tokens = 16;
  if (tokens == 16 && split_memory < Type, Small < Type, 16 >>> device.limits().shared_bytes) tokens = 8;
  const PairGroups groups = groups_of(ids, experts.experts, tokens, scratch);
  launch_groups(device, groups);
  const gpu::Ptr<const int32_t> order = groups.order;
  const Records records{gpu::pointer<uint8_t>(scratch + at.records, pairs * units * record_bytes<Type>),
                        gpu::pointer<float>(scratch + at.undo, pairs * units * 4), static_cast<int>(pairs),
                        static_cast<int>(units)};
  const PairInputs inputs{experts, order};
  gpu::launch_early<make_records<Type, PairInputs>, record_warps * 32>(device, {ceil_div(pairs * units, record_warps)},
                                                                       0, inputs, records);
  View products[2] = {args.out[0], args.out[0]};
  for (size_t i = 0; i < (attr.gated ? 2 : 1); ++i) {
    View& y = products[i];
    if (attr.gated) {
      y.data = scratch + at.products + static_cast<int64_t>(i) * at.product_bytes;
      y.strides = dense(DType::f32, y.shape).strides;
    }
    const View& matrix = args.in[2 + i];
    if (tokens == 32)
      launch_grouped<Type, 32>(matrix, y, records, experts, groups, device);
    else if (tokens == 16)
      launch_grouped<Type, 16>(matrix, y, records, experts, groups, device);
    else
      launch_grouped<Type, 8>(matrix, y, records, experts, groups, device);
  }
  if (!attr.gated) return;
  Node node;
  node.op = id(Op::gated), node.attributes = GatedAttr{attr.activation};
  gated_gpu().launch({&node, products, args.out}, device, nullptr);
}

// ---- a type's

template <DType Type>
void launch_experts(const Args& args, Accelerator& device, std::byte* scratch) {
  if (args.out[0].shape.count() == 0) return;
  const Experts experts = experts_in<Type>(args);
  const int64_t pairs = args.in[0].shape.count();
  const bool gated = args.attr<LinearOfAttr>().gated, one = args.in[0].shape[0] == 1;
  // Up to half as many pairs as experts most were chosen by one token alone; up to twice as many, by few.
  if (one || pairs <= std::min<int64_t>(experts.experts / 2, 65535))
    gated ? launch_few_pairs<Type, 2>(args, experts, device) : launch_few_pairs<Type, 1>(args, experts, device);
  else if (pairs <= 2 * experts.experts && takes_tiles<Type>(args, device.limits()))
    gated ? launch_some_pairs<Type, 2>(args, experts, device, scratch)
          : launch_some_pairs<Type, 1>(args, experts, device, scratch);
  else
    launch_many_pairs<Type>(args, experts, device, scratch);
}

template <DType Type>
int64_t experts_memory(int64_t columns) {
  return std::max<int64_t>(least_memory<Type, 2>(1, columns), split_memory<Type, Small<Type, 8>>);
}

template <DType Type>
int64_t experts_scratch(int64_t pairs, int64_t experts, int64_t rows, int64_t columns, bool gated) {
  return PairScratch<Type>(pairs, experts, rows, columns, gated).end;
}

#define EXPERTS(type)                                                  \
  ExpertForms experts_##type() {                                       \
    constexpr DType t = DType::type;                                   \
    return {experts_memory<t>, experts_scratch<t>, launch_experts<t>}; \
  }

}  // namespace consonant::GPU_BUILD::mma
