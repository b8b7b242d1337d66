// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of a unit of block types with one token, whose high and low bytes would leave six of a tensor core's
// eight columns unused: what is limiting here isn't the memory but the instructions, and what they read of shared
// memory.
//
// So the eight columns are four pairs of blocks with high and low bytes each, and the sixteen rows four rows of those
// four pairs, of two groups. A lane reads the dwords of four neighbouring rows at once, block i of pair g / 2, and has
// operands for four products, of one of the rows each. Of these a quarter counts: where a row's pair of blocks meets
// itself. Product m has pair j of blocks in the columns of pair j ^ m, so that each lane finds one of the four that
// counts: that of row 4 (g % 2) + (t ^ g / 2).
//
// The sums are those of mma_unit.hpp, bit by bit: whole numbers, or a pair of blocks after the other.
#include "ops/linear/mma_unit.hpp"

namespace consonant::GPU_BUILD::mma {

template <DType Type>
constexpr bool has_one = has_blocks(Type);

GPU_FN uint32_t element(const gpu::U4& four, int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// A lane's four rows of a block of one group.
template <DType Type>
struct RowsOfBlock {
  static constexpr BlockLayout layout = block_layout(Type);
  gpu::U4 base[2], upper[2];

  // `group`: of shared memory, `four`: rows 4 four ... 4 four + 3.
  GPU_FN RowsOfBlock(gpu::Shared<const uint8_t> group, int block, int four, int t) {
    const auto at = group + 16 * four;
    GPU_UNROLL
    for (int i = 0; i < dwords_of(layout.base_bits); ++i)
      base[i] =
          gpu::load16(at + (block * static_cast<int>(layout.base_bytes()) + 4 * dword_of(layout.base_bits, t, i)));
    GPU_UNROLL
    for (int i = 0; i < dwords_of(layout.upper_bits); ++i)
      upper[i] = gpu::load16(at + (UnitLayout<Type>::upper_at + block * static_cast<int>(layout.upper_bytes()) +
                                   4 * dword_of(layout.upper_bits, t, i)));
  }
  GPU_FN void bytes(int row, int t, uint32_t& low, uint32_t& high) const {
    uint32_t from[2] = {}, above[2] = {};
    GPU_UNROLL
    for (int i = 0; i < dwords_of(layout.base_bits); ++i) from[i] = element(base[i], row);
    GPU_UNROLL
    for (int i = 0; i < dwords_of(layout.upper_bits); ++i) above[i] = element(upper[i], row);
    quant_bytes<Type>(from, above, t, low, high);
  }
};

// What a lane adds up of the blocks of its pair, for a row of each group.
template <DType Type>
struct PairSums {
  static constexpr BlockLayout layout = block_layout(Type);
  int32_t high[2] = {}, low[2] = {}, minima[2] = {};
  float sums[2] = {};

  // c: of the row's block in group i, high and low at 2 i and 2 i + 1; of its first and second half if both have
  // scales. `group`: its records in shared memory; `inputs`: sums of the activations.
  GPU_FN void add(int i, const int32_t (&first)[4], const int32_t (&second)[4], gpu::Shared<const uint8_t> records,
                  gpu::Shared<const int32_t> inputs, int block, int row) {
    if constexpr (layout.super()) {
      constexpr int halves = layout.halves() ? 2 : 1;
      GPU_UNROLL
      for (int h = 0; h < halves; ++h) {
        const auto& c = h == 0 ? first : second;
        const int scale = whole_scale<Type>(records, block, h, row), at = halves * block + h;
        high[i] += scale * c[2 * i], low[i] += scale * c[2 * i + 1];
        if constexpr (layout.minimum()) minima[i] += whole_minimum<Type>(records, at, row) * inputs[at];
      }
    } else {
      const auto record = records + block * static_cast<int>(layout.record_bytes());
      sums[i] = gpu::fma(factor<Type>(record, row), static_cast<float>(256 * first[2 * i] + first[2 * i + 1]), sums[i]);
      if constexpr (layout.minimum())
        sums[i] = gpu::fma(minimum_factor<Type>(record, row), static_cast<float>(inputs[block]), sums[i]);
    }
  }

  // Of all pairs, for the lanes of the first one.
  GPU_FN float total(int i, gpu::Shared<const uint8_t> record, int row) const {
    // The lanes of a row's pairs p and q differ by 9 (p ^ q).
    if constexpr (!layout.super()) {
      const float second = gpu::shfl_xor(sums[i], 9), third = gpu::shfl_xor(sums[i], 18),
                  fourth = gpu::shfl_xor(sums[i], 27);
      return gpu::add(gpu::add(gpu::add(sums[i], second), third), fourth);
    } else {
      const auto over_pairs = [](int32_t x) {
        x += gpu::shfl_xor(x, 9);
        return x + gpu::shfl_xor(x, 18);
      };
      const auto up = static_cast<float>(over_pairs(high[i])), down = static_cast<float>(over_pairs(low[i]));
      const float product = gpu::mul(factor<Type>(record, row), gpu::fma(256, up, down));
      if constexpr (!layout.minimum()) return product;
      return gpu::fma(minimum_factor<Type>(record, row), static_cast<float>(over_pairs(minima[i])), product);
    }
  }
};

// The products of 16 rows with one token's record, stored to `to` [16] by those lanes that have them; `here`: blocks of
// the unit that are there.
template <DType Type>
GPU_FN void unit_product_of_one(gpu::Shared<const uint8_t> weights, int here, gpu::Shared<const uint8_t> record,
                                gpu::Shared<float> to) {
  using Layout = UnitLayout<Type>;
  constexpr BlockLayout layout = block_layout(Type);
  const int g = gpu::lane() / 4, t = gpu::lane() % 4, pair = g / 2, four = g % 2, mine = t ^ pair;
  const int row = 4 * four + mine;
  gpu::U4 x[4];
  GPU_UNROLL
  for (int m = 0; m < 4; ++m) x[m] = gpu::load16(record + ((pair ^ m) * 128 + g % 2 * 64 + 16 * t));
  PairSums<Type> sums;
  GPU_UNROLL
  for (int i = 0; i < 2; ++i) {
    const bool there = layout.super() || 2 * pair + i < here;
    const int block = there ? 2 * pair + i : here - 1;
    const RowsOfBlock<Type> rows[2] = {{weights, block, four, t}, {weights + Layout::group_bytes, block, four, t}};
    int32_t first[4] = {}, second[4] = {};
    GPU_UNROLL
    for (int m = 0; m < 4; ++m) {
      uint32_t words[4];
      GPU_UNROLL
      for (int q = 0; q < 2; ++q) rows[q].bytes(m, t, words[q], words[2 + q]);
      const uint32_t x0 = i == 0 ? x[m].x : x[m].z, x1 = i == 0 ? x[m].y : x[m].w;
      int32_t c[4] = {0, 0, 0, 0}, d[4] = {0, 0, 0, 0};
      if constexpr (layout.halves()) {
        multiply_bytes(c, words[0], words[1], x0);
        multiply_bytes(d, words[2], words[3], x1);
      } else {
        multiply_bytes(c, words, x0, x1);
      }
      GPU_UNROLL
      for (int k = 0; k < 4; ++k) {
        first[k] = m == mine ? c[k] : first[k];
        second[k] = m == mine ? d[k] : second[k];
      }
    }
    if (!there) continue;
    GPU_UNROLL
    for (int q = 0; q < 2; ++q)
      sums.add(q, first, second, weights + (q * Layout::group_bytes + Layout::records_at),
               gpu::cast<const int32_t>(record + part_bytes), block, row);
  }
  GPU_UNROLL
  for (int q = 0; q < 2; ++q) {
    const float total = sums.total(q, weights + (q * Layout::group_bytes + Layout::records_at), row);
    if (pair == 0) to[8 * q + row] = total;
  }
}

}  // namespace consonant::GPU_BUILD::mma
