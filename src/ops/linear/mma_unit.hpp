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

// A tile of 16 rows that a warp asks for, a unit at a time. Behind the last group or row come those of the last one
// again.
template <DType Type>
struct TileSource {
  using Layout = UnitLayout<Type>;
  static constexpr BlockLayout layout = block_layout(Type);
  static constexpr int base_bytes = static_cast<int>(layout.base_bytes()),
                       upper_bytes = static_cast<int>(layout.upper_bytes());
  static constexpr int record_bytes = static_cast<int>(layout.record_bytes());

  gpu::Ptr<const uint8_t> from[2];  // the lane's first bytes of the two groups; plain types: of the first row
  int64_t upper_at = 0, records_at = 0;
  int columns = 0;
  int64_t stride = 0;  // of plain types
  int rows = 0;        // of the tile

  TileSource() = default;
  GPU_FN TileSource(const Matrix<Type>& w, int tile) : columns(w.columns), stride(w.stride) {
    if constexpr (has_blocks(Type)) {
      GPU_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int group = 2 * tile + i < w.groups() ? 2 * tile + i : w.groups() - 1;
        from[i] = w.data + (group * w.stride + 16 * gpu::lane());
      }
      constexpr BlockLayout planes = block_layout(Type);
      const int64_t blocks = w.columns / 32;
      upper_at = planes.upper_at(blocks), records_at = planes.scales_at(blocks);
    } else {
      from[0] = w.data + 16 * tile * w.stride;
      rows = w.rows - 16 * tile;
    }
  }

  GPU_FN void request(int unit, gpu::Shared<uint8_t> to) const {
    if constexpr (has_blocks(Type)) {
      const int left = columns / 32 - unit * unit_blocks;
      const int here = layout.super() || left > unit_blocks ? unit_blocks : left;
      const auto at = to + 16 * gpu::lane();
      GPU_UNROLL
      for (int i = 0; i < 2; ++i) {
        copy_plane<unit_blocks * base_bytes>(at + i * Layout::group_bytes, from[i] + unit * (unit_blocks * base_bytes),
                                             here * base_bytes);
        if constexpr (layout.upper_bits != 0)
          copy_plane<unit_blocks * upper_bytes>(at + (i * Layout::group_bytes + Layout::upper_at),
                                                from[i] + (upper_at + unit * (unit_blocks * upper_bytes)),
                                                here * upper_bytes);
        constexpr int records = layout.super() ? 1 : unit_blocks;
        copy_plane<records * record_bytes>(at + (i * Layout::group_bytes + Layout::records_at),
                                           from[i] + (records_at + unit * (records * record_bytes)),
                                           layout.super() ? record_bytes : here * record_bytes);
      }
    } else {
      const int column = unit * unit_columns + 8 * gpu::lane();  // a warp's copy is a row
      const bool valid = column < columns;
      GPU_UNROLL
      for (int i = 0; i < 16; ++i)
        copy16(to + i * Layout::row_bytes + 16 * gpu::lane(),
               from[0] + ((i < rows ? i : rows - 1) * stride + (valid ? 2 * column : 0)), valid);
    }
  }

 private:
  // Up to `Most` bytes, of which `bytes` are there.
  template <int Most>
  GPU_FN static void copy_plane(gpu::Shared<uint8_t> to, gpu::Ptr<const uint8_t> from, int bytes) {
    constexpr int step = 16 * gpu::lane_width;
    GPU_UNROLL
    for (int at = 0; at < Most; at += step)
      if (16 * gpu::lane() + at < bytes) copy16(to + at, from + at);
  }
};

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

// Types whose operands are quants, as the subnormal halves that their bits are, times a word from a table of scales. A
// product is 2^-`scale_shift` of what row_operands gives: an exact power of two, so sums round alike.
template <DType Type>
constexpr bool has_scale_table = Type == DType::q4_k || Type == DType::q6_k;
template <DType Type>
constexpr int scale_shift = Type == DType::q4_k ? 14 : 16;
template <DType Type>
constexpr int table_scales = Type == DType::q4_k   ? 64
                             : Type == DType::q6_k ? 256
                                                   : 0;
template <DType Type>
constexpr int table_bytes = table_scales<Type> * 8;

// Two words a scale. q4_k: 2^10 s, and 2^6 s for quants four bits higher. q6_k: 2^8 s, and what takes 32 s off.
template <DType Type>
GPU_FN void make_scale_table(gpu::Shared<uint32_t> table) {
  for (int i = gpu::thread(); i < table_scales<Type>; i += gpu::threads()) {
    const auto s = static_cast<float>(Type == DType::q6_k ? static_cast<int8_t>(i) : i);
    const float first = Type == DType::q6_k ? s * 256 : s * 1024;
    const float second = Type == DType::q6_k ? s * -0x1p-11f : s * 64;
    table[2 * i] = half2(first, first), table[2 * i + 1] = half2(second, second);
  }
}

template <DType Type>
GPU_FN void table_operands(gpu::Shared<const uint32_t> base, gpu::Shared<const uint32_t> upper,
                           gpu::Shared<const uint8_t> record, gpu::Shared<const uint32_t> table, int b, int g, int t,
                           uint32_t (&to)[4]) {
  if constexpr (Type == DType::q4_k) {
    const uint32_t word = base[8 * t + g], shifted = word >> 8;
    const int s = 2 * record[32 + 16 * b + g];
    const uint32_t low = table[s], high = table[s + 1];
    to[0] = half2_mul(word & 0x000F000Fu, low), to[1] = half2_mul(shifted & 0x000F000Fu, low);
    to[2] = half2_mul(word & 0x00F000F0u, high), to[3] = half2_mul(shifted & 0x00F000F0u, high);
  } else {
    uint32_t low, high;
    quant_bytes<Type>(base, upper, g, t, low, high);
    GPU_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int s = 2 * record[16 + 16 * b + 8 * h + g];
      const uint32_t scale = table[s], less = table[s + 1], bytes = h ? high : low;
      to[2 * h] = half2_fma(gpu::byte_perm(bytes, 0, 0x4240), scale, less);
      to[2 * h + 1] = half2_fma(gpu::byte_perm(bytes, 0, 0x4341), scale, less);
    }
  }
}

// The products of a unit of 16 rows, at `weights` in shared memory, with the lane's token (8 tokens a warp), whose
// record is at `record`. `table`: see make_scale_table.
template <DType Type>
GPU_FN void unit_product(gpu::Shared<const uint8_t> weights, int here, gpu::Shared<const uint8_t> record,
                         gpu::Shared<const uint32_t> table, float (&product)[4]) {
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
        const auto base = group + b * base_words, upper = group + Layout::upper_at / 4 + b * upper_words;
        if constexpr (has_scale_table<Type>)
          table_operands<Type>(base, upper, records + i * Layout::group_bytes, table, b, g, t, row[i]);
        else
          row_operands<Type>(base, upper, records + i * Layout::group_bytes, b, g, t, row[i]);
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
    if constexpr (has_scale_table<Type>) {
      constexpr float undo = 1 << scale_shift<Type>;
      GPU_UNROLL
      for (float& p : product) p *= undo;
    }
    finish_unit<Type>(records, records + Layout::group_bytes, record + part_bytes, here, product);
  }
}

}  // namespace consonant::GPU_BUILD::mma
