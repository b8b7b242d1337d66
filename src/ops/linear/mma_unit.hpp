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

// Of a unit's products of 16 rows and 8 tokens a lane has four sums: rows g (0, 1) and g + 8 (2, 3), and two tokens.
template <DType Type>
GPU_FN int lane_token(int i) {
  const int t = gpu::lane() % 4;
  return has_blocks(Type) ? t + i % 2 * 4 : 2 * t + i % 2;
}

// The sums while a unit's blocks are added up. Blocks with scales of their own are added up by pairs, and these in
// their order.
template <DType Type>
struct UnitSums {
  static constexpr bool super = block_layout(Type).super();
  float sums[super ? 1 : 4] = {}, pair[super ? 1 : 4] = {};
  int32_t high[super ? 4 : 1] = {}, low[super ? 4 : 1] = {};

  GPU_FN void end_pair() {
    if constexpr (has_blocks(Type) && !super) {
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) sums[i] = gpu::add(sums[i], pair[i]), pair[i] = 0;
    }
  }
};

// A block of two groups, by whole numbers.
template <DType Type>
struct BlockOperands {
  static constexpr BlockLayout layout = block_layout(Type);
  static constexpr int halves = layout.halves() ? 2 : 1;

  uint32_t words[4];  // rows g and g + 8 of the first 16 columns, then of the others
  int32_t scales[2][halves];
  float factors[2], minima[2];  // of blocks on their own

  // Row i of the two; b: block of the unit; `record`: the super-block's or the block's.
  GPU_FN void load(int i, gpu::Shared<const uint8_t> base, gpu::Shared<const uint8_t> upper,
                   gpu::Shared<const uint8_t> record, int b) {
    const int g = gpu::lane() / 4, t = gpu::lane() % 4;
    quant_bytes<Type>(gpu::cast<const uint32_t>(base), gpu::cast<const uint32_t>(upper), g, t, words[i], words[2 + i]);
    if constexpr (layout.super()) {
      GPU_UNROLL
      for (int h = 0; h < halves; ++h) scales[i][h] = whole_scale<Type>(record, b, h, g);
    } else {
      factors[i] = factor<Type>(record, g);
      if constexpr (layout.minimum()) minima[i] = minimum_factor<Type>(record, g);
    }
  }
};

// Adds a block's products with tokens 4 j ... 4 j + 3, given the lane's two words of them, and for blocks with minima
// on their own the sum of the block's activations of token 4 j + t.
template <DType Type>
GPU_FN void add_block(const BlockOperands<Type>& w, uint32_t x0, uint32_t x1, int32_t sum, int j, UnitSums<Type>& to) {
  constexpr BlockLayout layout = block_layout(Type);
  if constexpr (layout.halves()) {
    int32_t first[4] = {0, 0, 0, 0}, second[4] = {0, 0, 0, 0};
    multiply_bytes(first, w.words[0], w.words[1], x0);
    multiply_bytes(second, w.words[2], w.words[3], x1);
    GPU_UNROLL
    for (int i = 0; i < 2; ++i) {
      to.high[2 * i + j] += w.scales[i][0] * first[2 * i] + w.scales[i][1] * second[2 * i];
      to.low[2 * i + j] += w.scales[i][0] * first[2 * i + 1] + w.scales[i][1] * second[2 * i + 1];
    }
  } else {
    int32_t c[4] = {0, 0, 0, 0};
    multiply_bytes(c, w.words, x0, x1);
    GPU_UNROLL
    for (int i = 0; i < 2; ++i) {
      if constexpr (layout.super()) {
        to.high[2 * i + j] += w.scales[i][0] * c[2 * i], to.low[2 * i + j] += w.scales[i][0] * c[2 * i + 1];
      } else {
        float& out = to.pair[2 * i + j];
        out = gpu::fma(w.factors[i], static_cast<float>(256 * c[2 * i] + c[2 * i + 1]), out);
        if constexpr (layout.minimum()) out = gpu::fma(w.minima[i], static_cast<float>(sum), out);
      }
    }
  }
}

// From the sums of a unit's products to its share of the result. `up` and `down` are the records of the two groups,
// `sums` those of the activations of tokens t and t + 4, of which the second counts if `both`.
template <DType Type>
GPU_FN void finish_unit(const UnitSums<Type>& from, gpu::Shared<const uint8_t> up, gpu::Shared<const uint8_t> down,
                        const gpu::Shared<const uint8_t> (&sums)[2], bool both, float (&product)[4]) {
  constexpr BlockLayout layout = block_layout(Type);
  const int g = gpu::lane() / 4;
  if constexpr (!layout.super()) {
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) product[i] = from.sums[i];
  } else {
    const float factors[2] = {factor<Type>(up, g), factor<Type>(down, g)};
    GPU_UNROLL
    for (int i = 0; i < 4; ++i)
      product[i] =
          gpu::mul(factors[i / 2], gpu::fma(256, static_cast<float>(from.high[i]), static_cast<float>(from.low[i])));
  }
  if constexpr (layout.super() && layout.minimum()) {
    int32_t minima[4] = {0, 0, 0, 0};
    GPU_UNROLL
    for (int four = 0; four < (layout.halves() ? 4 : 2); ++four) {
      int32_t m[2][4];
      GPU_UNROLL
      for (int k = 0; k < 4; ++k)
        m[0][k] = whole_minimum<Type>(up, 4 * four + k, g), m[1][k] = whole_minimum<Type>(down, 4 * four + k, g);
      GPU_UNROLL
      for (int j = 0; j < 2; ++j) {
        if (j == 1 && !both) break;
        const gpu::U4 words = gpu::load16(sums[j] + 16 * four);
        const int32_t x[4] = {static_cast<int32_t>(words.x), static_cast<int32_t>(words.y),
                              static_cast<int32_t>(words.z), static_cast<int32_t>(words.w)};
        GPU_UNROLL
        for (int i = 0; i < 2; ++i) GPU_UNROLL
        for (int k = 0; k < 4; ++k) minima[2 * i + j] += m[i][k] * x[k];
      }
    }
    const float by[2] = {minimum_factor<Type>(up, g), minimum_factor<Type>(down, g)};
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) product[i] = gpu::fma(by[i / 2], static_cast<float>(minima[i]), product[i]);
  }
}

// The products of a unit of 16 rows, at `weights` in shared memory, with up to 8 tokens, whose records are one after
// the other; `here`: blocks of the unit that are there. Most: of the tokens, for which there are fewer instructions up
// to 4.
template <DType Type, int Most>
GPU_FN void unit_product(gpu::Shared<const uint8_t> weights, int here, gpu::Shared<const uint8_t> records, int tokens,
                         float (&product)[4]) {
  using Layout = UnitLayout<Type>;
  constexpr BlockLayout layout = block_layout(Type);
  const int g = gpu::lane() / 4, t = gpu::lane() % 4;
  const auto record_of = [&](int token) {
    return records + (token < tokens ? token : tokens - 1) * record_bytes<Type>;
  };
  if constexpr (!has_blocks(Type)) {
    const auto record = record_of(g);
    GPU_UNROLL
    for (float& p : product) p = 0;
    GPU_UNROLL
    for (int b = 0; b < unit_blocks; ++b) {
      if (b >= here) break;
      const auto at = weights + g * Layout::row_bytes + 64 * b + 16 * t;
      const gpu::U4 up = gpu::load16(at), down = gpu::load16(at + 8 * Layout::row_bytes);
      const uint32_t first[4] = {up.x, down.x, up.y, down.y}, second[4] = {up.z, down.z, up.w, down.w};
      GPU_UNROLL
      for (int part = 0; part < parts<Type>; ++part) {
        const gpu::U4 x = gpu::load16(record + part * part_bytes + 64 * b + 16 * t);
        multiply<Type == DType::bf16>(product, first, x.x, x.y);
        multiply<Type == DType::bf16>(product, second, x.z, x.w);
      }
    }
  } else {
    constexpr int base_bytes = static_cast<int>(layout.base_bytes()),
                  upper_bytes = static_cast<int>(layout.upper_bytes());
    constexpr int each = layout.super() ? 0 : static_cast<int>(layout.record_bytes());
    const auto scales = weights + Layout::records_at;
    const bool both = Most > 4 && tokens > 4;
    gpu::Shared<const uint8_t> x[2], sums[2];
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) {
      x[j] = record_of(4 * j + g / 2) + (g % 2 * 64 + 16 * t);
      sums[j] = record_of(4 * j + t) + part_bytes;
    }
    UnitSums<Type> unit;
    GPU_UNROLL
    for (int pair = 0; pair < unit_blocks / 2; ++pair) {
      if (!layout.super() && 2 * pair >= here) break;
      gpu::U4 words[2] = {};
      words[0] = gpu::load16(x[0] + 128 * pair);
      if (both) words[1] = gpu::load16(x[1] + 128 * pair);
      GPU_UNROLL
      for (int b = 2 * pair; b < 2 * pair + 2; ++b) {
        if (!layout.super() && b >= here) break;
        BlockOperands<Type> w;
        GPU_UNROLL
        for (int i = 0; i < 2; ++i) {
          const auto group = weights + i * Layout::group_bytes;
          w.load(i, group + b * base_bytes, group + Layout::upper_at + b * upper_bytes,
                 scales + i * Layout::group_bytes + b * each, b);
        }
        GPU_UNROLL
        for (int j = 0; j < 2; ++j) {
          if (j == 1 && !both) break;
          int32_t sum = 0;
          if constexpr (layout.minimum() && !layout.super()) sum = gpu::cast<const int32_t>(sums[j])[b];
          add_block<Type>(w, b % 2 ? words[j].z : words[j].x, b % 2 ? words[j].w : words[j].y, sum, j, unit);
        }
      }
      unit.end_pair();
    }
    finish_unit<Type>(unit, scales, scales + Layout::group_bytes, sums, both, product);
  }
}

}  // namespace consonant::GPU_BUILD::mma
