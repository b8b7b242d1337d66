// SPDX-License-Identifier: Apache-2.0
#pragma once

// A unit of 16 rows: how a warp brings it to shared memory, and its products with up to 8 tokens.
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

}  // namespace consonant::GPU_BUILD::mma
