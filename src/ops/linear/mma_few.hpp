// SPDX-License-Identifier: Apache-2.0
#pragma once

// A linear node for few tokens: bound by reading the weights once. Warps of a block share a tile of 16 rows, a unit of
// 256 columns each at a time. A warp asks for its weights of the next units before it works on one, and for the first
// ones before the kernel waits for its inputs. The units' products are added in their order by the block's threads.
//
// `Inputs` (load: four activations) says what multiplies the weights, `Outputs` (store) what becomes of the products.
#include "ops/linear/mma_activations.hpp"

namespace consonant::GPU_BUILD::mma {

template <DType Type>
struct Matrix {
  gpu::Ptr<const uint8_t> data;
  int64_t stride;  // bytes from one group of rows8, or from one row, to the next
  int rows, columns;

  GPU_FN int groups() const { return (rows + 7) / 8; }
  // Blocks of a unit that lie in the matrix, whole or in part.
  GPU_FN int blocks_of(int unit) const {
    const int left = (columns + 31) / 32 - unit * unit_blocks;
    return left < unit_blocks ? left : unit_blocks;
  }
};

// y = products + bias + residual.
struct PlainOutputs {
  Rows<float> y;
  gpu::Ptr<const float> bias;  // or null
  Rows<const float> residual;  // data null: none
  bool fours = false;          // rows of all three begin at multiples of 16 bytes

  GPU_FN void store(int row, int token, float sum) const {
    if (bias) sum = gpu::add(sum, bias[row]);
    if (residual.data) sum = gpu::add(sum, residual.row(token)[row]);
    y.row(token)[row] = sum;
  }
  // The same in two steps, for the first `count` of four rows, of which the first is a multiple of four.
  GPU_FN Four added_to(int row, int token, Four sums, int count) const {
    const auto add = [&](gpu::Ptr<const float> from) {
      if (fours && count >= 4) {
        const Four more = four_of(gpu::load16(from));
        GPU_UNROLL
        for (int i = 0; i < 4; ++i) sums.x[i] = gpu::add(sums.x[i], more.x[i]);
      } else {
        GPU_UNROLL
        for (int i = 0; i < 4; ++i)
          if (i < count) sums.x[i] = gpu::add(sums.x[i], from[i]);
      }
    };
    if (bias) add(bias + row);
    if (residual.data) add(residual.row(token) + row);
    return sums;
  }
  GPU_FN void store_four(int row, int token, const Four& sums, int count) const {
    const auto to = y.row(token) + row;
    if (fours && count >= 4) {
      gpu::store16(to, gpu::U4{gpu::to_bits(sums.x[0]), gpu::to_bits(sums.x[1]), gpu::to_bits(sums.x[2]),
                               gpu::to_bits(sums.x[3])});
      return;
    }
    GPU_UNROLL
    for (int i = 0; i < 4; ++i)
      if (i < count) to[i] = sums.x[i];
  }
};

constexpr int few_warps = 8;

// How a node is cut, the same for all of its blocks.
struct FewShape {
  int tokens;
  int units;    // of a row
  int tiles;    // of 16 rows
  int at_once;  // tiles that a block works on together, so that all warps have a unit

  GPU_FN int rounds() const { return (tiles + at_once - 1) / at_once; }
  GPU_FN int items() const { return at_once * units; }
};

template <DType Type>
constexpr int few_stages = UnitLayout<Type>::bytes <= 3200 ? 3 : 2;

// A block's shared memory, in bytes.
template <DType Type>
struct FewMemory {
  int64_t records_at, undo_at, sums_at, end;

  constexpr explicit FewMemory(const FewShape& s) {
    const int64_t records = int64_t{s.units} * s.tokens;
    records_at = int64_t{few_warps} * few_stages<Type> * UnitLayout<Type>::bytes;
    undo_at = records_at + records * record_bytes<Type>;
    sums_at = undo_at + (records * 4 + 15) / 16 * 16;
    end = sums_at + 2 * int64_t{s.at_once} * records * 64;
  }
};

GPU_FN void copy_plane(gpu::Shared<uint8_t> to, gpu::Ptr<const uint8_t> from, int bytes) {
  GPU_UNROLL
  for (int at = 16 * gpu::lane(); at < bytes; at += 16 * gpu::lane_width) copy16(to + at, from + at);
}

// A warp asks for a unit of a tile. Behind the last group or row come those of the last one again.
template <DType Type>
GPU_FN void request_unit(const Matrix<Type>& w, int tile, int unit, gpu::Shared<uint8_t> to) {
  using Layout = UnitLayout<Type>;
  constexpr BlockLayout layout = block_layout(Type);
  if constexpr (has_blocks(Type)) {
    const int here = layout.super() ? unit_blocks : w.blocks_of(unit);
    const int64_t blocks = w.columns / 32, first = int64_t{unit} * unit_blocks;
    GPU_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int group = 2 * tile + i < w.groups() ? 2 * tile + i : w.groups() - 1;
      const auto from = w.data + group * w.stride;
      const auto at = to + i * Layout::group_bytes;
      copy_plane(at, from + first * layout.base_bytes(), here * static_cast<int>(layout.base_bytes()));
      if constexpr (layout.upper_bits != 0)
        copy_plane(at + Layout::upper_at, from + layout.upper_at(blocks) + first * layout.upper_bytes(),
                   here * static_cast<int>(layout.upper_bytes()));
      copy_plane(at + Layout::records_at,
                 from + layout.scales_at(blocks) + layout.records(first) * layout.record_bytes(),
                 (layout.super() ? 1 : here) * static_cast<int>(layout.record_bytes()));
    }
  } else {
    const int column = unit * unit_columns + 8 * gpu::lane();  // a warp's copy is a row
    GPU_UNROLL
    for (int i = 0; i < 16; ++i) {
      const int row = 16 * tile + i < w.rows ? 16 * tile + i : w.rows - 1;
      const bool valid = column < w.columns;
      copy16(to + i * Layout::row_bytes + 16 * gpu::lane(), w.data + row * w.stride + (valid ? 2 * column : 0), valid);
    }
  }
}

// A token's sixteen bytes of a block.
GPU_FN gpu::U4 operand(gpu::Shared<const uint8_t> record, int b, int t) {
  return gpu::load16(record + 64 * b + 16 * t);
}

// What a lane has of the sums of activations: b0, b1 of each product with minima.
template <DType Type>
GPU_FN void multiply_minima(float (&c)[4], const uint32_t (&first)[2], const uint32_t (&second)[2],
                            gpu::Shared<const uint8_t> sums, int t) {
  const auto words = gpu::cast<const uint32_t>(sums);
  if constexpr (block_layout(Type).halves()) {
    const uint32_t a[4] = {first[0], first[1], second[0], second[1]};
    multiply<false>(c, a, words[t], words[4 + t]);
    multiply<false>(c, a, words[8 + t], words[12 + t]);
  } else {
    const uint32_t a[4] = {first[0], first[1], first[0], first[1]};
    multiply<false>(c, a, words[t], words[4 + t]);
  }
}

// From the sums of a unit's products to its share of the result. `up` and `down` are the records of the two groups.
template <DType Type>
GPU_FN void finish_unit(gpu::Shared<const uint8_t> up, gpu::Shared<const uint8_t> down, gpu::Shared<const uint8_t> sums,
                        int here, float (&product)[4]) {
  constexpr BlockLayout layout = block_layout(Type);
  const int g = gpu::lane() / 4, t = gpu::lane() % 4;
  if constexpr (layout.super()) {
    const float factors[2] = {factor<Type>(up, g), factor<Type>(down, g)};
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) product[i] = gpu::mul(factors[i / 2], product[i]);
  }
  if constexpr (layout.minimum()) {
    const uint32_t first[2] = {minima<Type>(up, t, 0, g, here), minima<Type>(down, t, 0, g, here)};
    uint32_t second[2] = {0, 0};
    if constexpr (layout.halves())
      second[0] = minima<Type>(up, t, 1, g, here), second[1] = minima<Type>(down, t, 1, g, here);
    float c[4] = {0, 0, 0, 0};
    multiply_minima<Type>(c, first, second, sums, t);
    const float factors[2] = {minimum_factor<Type>(up, g), minimum_factor<Type>(down, g)};
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) product[i] = gpu::fma(factors[i / 2], c[i], product[i]);
  }
}

// The products of a unit of 16 rows, at `weights` in shared memory, with the lane's token (8 tokens a warp), whose
// record is at `record`.
template <DType Type>
GPU_FN void unit_product(gpu::Shared<const uint8_t> weights, int here, gpu::Shared<const uint8_t> record,
                         float (&product)[4]) {
  using Layout = UnitLayout<Type>;
  constexpr BlockLayout layout = block_layout(Type);
  const int g = gpu::lane() / 4, t = gpu::lane() % 4;
  GPU_UNROLL
  for (float& p : product) p = 0;
  if constexpr (!has_blocks(Type)) {
    GPU_UNROLL
    for (int b = 0; b < unit_blocks; ++b) {
      if (b >= here) break;
      const auto at = weights + g * Layout::row_bytes + 64 * b + 16 * t;
      const gpu::U4 up = gpu::load16(at), down = gpu::load16(at + 8 * Layout::row_bytes);
      const uint32_t first[4] = {up.x, down.x, up.y, down.y}, second[4] = {up.z, down.z, up.w, down.w};
      GPU_UNROLL
      for (int part = 0; part < parts<Type>; ++part) {
        const gpu::U4 x = operand(record + part * part_bytes, b, t);
        multiply<Type == DType::bf16>(product, first, x.x, x.y);
        multiply<Type == DType::bf16>(product, second, x.z, x.w);
      }
    }
  } else {
    constexpr int base_words = static_cast<int>(layout.base_bytes() / 4);
    constexpr int upper_words = static_cast<int>(layout.upper_bytes() / 4);
    constexpr int each = layout.super() ? 0 : static_cast<int>(layout.record_bytes());
    const auto words = gpu::cast<const uint32_t>(weights);
    const auto records = weights + Layout::records_at;
    GPU_UNROLL
    for (int b = 0; b < unit_blocks; ++b) {
      if (!layout.super() && b >= here) break;
      uint32_t row[2][4];
      GPU_UNROLL
      for (int i = 0; i < 2; ++i) {
        const auto group = words + i * (Layout::group_bytes / 4);
        row_operands<Type>(group + b * base_words, group + Layout::upper_at / 4 + b * upper_words,
                           records + i * Layout::group_bytes, b, g, t, row[i]);
      }
      const uint32_t first[4] = {row[0][0], row[1][0], row[0][1], row[1][1]};
      const uint32_t second[4] = {row[0][2], row[1][2], row[0][3], row[1][3]};
      const gpu::U4 x = operand(record, b, t);
      if constexpr (layout.super()) {
        multiply<false>(product, first, x.x, x.y);
        multiply<false>(product, second, x.z, x.w);
      } else {
        float c[4] = {0, 0, 0, 0};
        multiply<false>(c, first, x.x, x.y);
        multiply<false>(c, second, x.z, x.w);
        GPU_UNROLL
        for (int i = 0; i < 4; ++i)
          product[i] = gpu::fma(factor<Type>(records + i / 2 * Layout::group_bytes + b * each, g), c[i], product[i]);
      }
    }
    finish_unit<Type>(records, records + Layout::group_bytes, record + part_bytes, here, product);
  }
}

// The units of a warp, one after another: item i of a round is unit i % units of its tile i / units.
struct FewWork {
  const FewShape& shape;
  int round, item;

  GPU_FN FewWork(const FewShape& shape) : shape(shape), round(static_cast<int>(gpu::block())), item(gpu::warp()) {
    if (item >= shape.items()) round = shape.rounds();  // nothing for this warp
  }
  GPU_FN bool more() const { return round < shape.rounds(); }
  GPU_FN int unit() const { return item % shape.units; }
  GPU_FN int tile() const { return round * shape.at_once + item / shape.units; }
  GPU_FN void advance() {
    item += few_warps;
    if (item < shape.items()) return;
    item = gpu::warp(), round += static_cast<int>(gpu::blocks());
  }
};

// Adds the units' products of a round's tiles in their order.
template <class Outputs>
GPU_FN void few_results(const FewShape& s, int round, int rows, gpu::Shared<const float> sums,
                        gpu::Shared<const float> undo, const Outputs& outputs) {
  for (int o = gpu::thread(); o < s.at_once * 16 * s.tokens; o += gpu::threads()) {
    const int in_tile = o % (16 * s.tokens), tile = o / (16 * s.tokens), token = in_tile / 16;
    const int row = (round * s.at_once + tile) * 16 + in_tile % 16;
    if (row >= rows) continue;
    float total = 0;
    for (int unit = 0; unit < s.units; ++unit) {
      const int64_t item = int64_t{tile} * s.units + unit;
      total = gpu::fma(sums[item * 16 * s.tokens + in_tile], undo[unit * s.tokens + token], total);
    }
    outputs.store(row, token, total);
  }
}

template <DType Type, class Inputs, class Outputs>
GPU_KERNEL void few_tokens(Matrix<Type> w, FewShape s, Inputs inputs, Outputs outputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  constexpr int stages = few_stages<Type>, bytes = UnitLayout<Type>::bytes;
  const FewMemory<Type> memory(s);
  const auto weights = shared + gpu::warp() * stages * bytes;
  const auto records = shared + memory.records_at;
  const auto undo = gpu::cast<float>(shared + memory.undo_at), sums = gpu::cast<float>(shared + memory.sums_at);

  FewWork next(s);
  int free = 0;
  const auto request = [&] {
    if (next.more()) request_unit(w, next.tile(), next.unit(), weights + free * bytes), next.advance();
    end_batch();
    free = free + 1 < stages ? free + 1 : 0;
  };
  for (int i = 0; i + 1 < stages; ++i) request();

  gpu::wait_for_inputs();
  for (int r = gpu::warp(); r < s.units * s.tokens; r += few_warps) {
    const float power = make_record<Type>(inputs, r % s.tokens, r / s.tokens, records + r * record_bytes<Type>);
    if (gpu::lane() == 0) undo[r] = power;
  }
  gpu::sync();

  const int g = gpu::lane() / 4, t = gpu::lane() % 4, token = g < s.tokens ? g : s.tokens - 1;
  int stage = 0;
  for (int round = static_cast<int>(gpu::block()), turn = 0; round < s.rounds();
       round += static_cast<int>(gpu::blocks()), turn ^= 1) {
    const auto to = sums + int64_t{turn} * s.items() * 16 * s.tokens;
    for (int item = gpu::warp(); item < s.items(); item += few_warps) {
      wait_for_batches<stages - 2>();
      warp_sync();
      request();
      const int unit = item % s.units;
      float product[4];
      unit_product<Type>(weights + stage * bytes, w.blocks_of(unit),
                         records + (unit * s.tokens + token) * record_bytes<Type>, product);
      stage = stage + 1 < stages ? stage + 1 : 0;
      GPU_UNROLL
      for (int i = 0; i < 4; ++i)
        if (2 * t + i % 2 < s.tokens)
          to[int64_t{item} * 16 * s.tokens + (2 * t + i % 2) * 16 + g + i / 2 * 8] = product[i];
    }
    gpu::sync();
    few_results(s, round, w.rows, to, undo, outputs);
  }
}

}  // namespace consonant::GPU_BUILD::mma
