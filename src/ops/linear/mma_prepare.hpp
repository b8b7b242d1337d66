// SPDX-License-Identifier: Apache-2.0
#pragma once

// Both sides of mma_halves.hpp's product as halves: tokens, and slabs of weights. A row of either is multiplied with a
// power of two, so that it neither overflows nor gets lost in subnormals, and each value, decoded whole, is rounded
// once: to 11 bits, down to 2^-24 (weights: about 2^-26) of the row's largest. bfloats have 8 bits, so they stay what
// they are. Bound by memory: 0.5 to 1 byte read and 2 written a weight.
#include "ops/linear/mma_halves.hpp"

namespace consonant::GPU_BUILD::mma {

// Where rows of halves go; `undo` is what results are multiplied with.
struct HalvesRows {
  gpu::Ptr<uint8_t> data;
  gpu::Ptr<float> undo;
  int columns;  // a multiple of those of a step; zeros behind the matrix's

  GPU_FN gpu::Ptr<uint8_t> at(int64_t row, int column) const { return data + (row * columns + column) * 2; }
};

constexpr int prepare_threads = 256, prepare_warps = prepare_threads / 32;

GPU_FN gpu::U4 eight_halves(const Four& low, const Four& high) {
  return {half2(low.x[0], low.x[1]), half2(low.x[2], low.x[3]), half2(high.x[0], high.x[1]),
          half2(high.x[2], high.x[3])};
}

// ---- tokens: a block's

template <class Inputs>
GPU_FN void prepare_token(const Inputs& inputs, int token, const HalvesRows& to, int columns) {
  GPU_SHARED(uint32_t, parts, prepare_warps);
  uint32_t most = 0;
  for (int c = 8 * gpu::thread(); c < columns; c += 8 * prepare_threads)
    most = most_bits(most_bits(most, inputs.load(token, c)), inputs.load(token, c + 4));
  most = warp_max_bits(most);
  if (gpu::lane() == 0) parts[gpu::warp()] = most;
  gpu::sync();
  GPU_UNROLL
  for (int i = 0; i < prepare_warps; ++i) {
    const uint32_t part = parts[i];
    most = part > most ? part : most;
  }
  const Powers power = powers(most);
  if (gpu::thread() == 0) to.undo[token] = power.undo;
  for (int c = 8 * gpu::thread(); c < to.columns; c += 8 * prepare_threads) {
    Four low = inputs.load(token, c), high = inputs.load(token, c + 4);
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) low.x[i] *= power.scale, high.x[i] *= power.scale;
    gpu::store16(to.at(token, c), eight_halves(low, high));
  }
}

// ---- weights: a block has a group of eight rows

// To 2^14 ... 2^15, given the bits of what no value is larger than.
GPU_FN Powers weight_powers(uint32_t bound_bits) {
  uint32_t e = bound_bits >> 23;
  if (e < 27) e = 27;
  return {gpu::from_bits((268 - e) << 23), gpu::from_bits((e - 14) << 23)};
}

// The largest magnitudes of a type's parts: an element is d * scale * number - m * minimum.
template <DType Type>
struct Largest {
  static constexpr BlockLayout layout = block_layout(Type);
  static constexpr float number() {
    constexpr int quants = 1 << (layout.base_bits + layout.upper_bits);
    if (layout.quant == Quant::offset) return layout.offset > quants / 2 ? layout.offset : quants - layout.offset;
    return layout.quant == Quant::fp4 ? 12 : 128;
  }
  static constexpr float scale() {
    switch (layout.scales) {
      case Scales::k32:
      case Scales::k16:
        return 128;
      case Scales::k32_min:
        return 63;
      case Scales::k16_six:
        return 32;
      case Scales::k16_min:
        return 15;
      default:
        return 1;
    }
  }
  static constexpr float minimum() { return layout.scales == Scales::half_min ? 1 : scale(); }
};

// What no element of row r is larger than in a record.
template <DType Type>
GPU_FN float record_bound(const PackedGroup<Type>& group, int record, int r) {
  const auto words = group.words + group.record_at(PackedGroup<Type>::super ? int64_t{8} * record : record);
  if constexpr (block_layout(Type).scales == Scales::e8m0) {
    return Largest<Type>::number() * e8m0_half_of(gpu::cast<const uint8_t>(words)[r]);
  } else {
    const auto halves = gpu::cast<const uint16_t>(words);
    float bound = Largest<Type>::scale() * Largest<Type>::number() * gpu::abs(gpu::from_half(halves[r]));
    if constexpr (block_layout(Type).minimum())
      bound += Largest<Type>::minimum() * gpu::abs(gpu::from_half(halves[8 + r]));
    return bound;
  }
}

// Four rows of half a block, in registers: dwords 2 h, 2 h + 1, 2 h + 4 and 2 h + 5, so that a pair of threads
// (h = 0, 1) has 8 neighbours in both halves of the block.
template <DType Type>
struct HalfQuad : QuadScales<Type> {
  using Group = PackedGroup<Type>;
  using QuadScales<Type>::word_of;
  static constexpr BlockLayout layout = Group::layout;
  static constexpr int words_of(int bits) { return bits == 8 ? 4 : bits == 1 ? 1 : 2; }

  gpu::U4 base[words_of(layout.base_bits)], upper[words_of(layout.upper_bits)];
  int h;

  template <int Bits>
  GPU_FN void load_plane(gpu::Ptr<const uint32_t> plane, gpu::U4 (&to)[words_of(Bits)]) const {
    GPU_UNROLL
    for (int i = 0; i < words_of(Bits); ++i)
      to[i] = gpu::load16(plane + 8 * (Bits == 8 ? 2 * h + i % 2 + i / 2 * 4 : Bits == 4 ? 2 * h + i : i));
  }
  GPU_FN void load(const Group& group, int b, int half, int quad) {
    h = half;
    load_plane<layout.base_bits>(group.words + (group.base_at(b) + quad * 4), base);
    if constexpr (layout.upper_bits != 0)
      load_plane<layout.upper_bits>(group.words + (group.upper_at(b) + quad * 4), upper);
    this->load_scales(group, b, quad);
  }

  // Of dword 2 h + j + 4 up.
  template <int Bits>
  GPU_FN uint32_t bits_of(const gpu::U4 (&plane)[words_of(Bits)], int j, int up, int row) const {
    constexpr uint32_t mask = 0x01010101u * ((1u << Bits) - 1);
    if constexpr (Bits == 8) return word_of(plane[2 * up + j], row);
    if constexpr (Bits == 4) return word_of(plane[j], row) >> 4 * up & mask;
    if constexpr (Bits == 2) return word_of(plane[up], row) >> 2 * (2 * h + j) & mask;
    return word_of(plane[0], row) >> (2 * h + j + 4 * up) & mask;
  }
  GPU_FN uint32_t quants(int j, int up, int row) const {
    uint32_t q = bits_of<layout.base_bits>(base, j, up, row);
    if constexpr (layout.upper_bits != 0) q |= bits_of<layout.upper_bits>(upper, j, up, row) << layout.base_bits;
    return q;
  }

  // Elements 8 h ... 8 h + 7 of half `up` of the block.
  GPU_FN gpu::U4 decode(int b, int up, int row, float power) const {
    ScaleMin s = this->scale_min(b, Group::halves ? up : 0, row);
    s.scale *= power, s.min *= power;
    Four four[2];
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) {
      four[j] = numbers<Type>(quants(j, up, row));
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) four[j].x[i] = gpu::fma(s.scale, four[j].x[i], s.min);
    }
    return eight_halves(four[0], four[1]);
  }
};

// Eight rows of blocks: `group` of the matrix becomes rows `first` ... `first` + 7.
template <DType Type>
GPU_FN void prepare_group(const Matrix<Type>& w, int group, const HalvesRows& to, int first) {
  GPU_SHARED(uint32_t, parts, prepare_warps * 8);
  const int blocks = w.columns / 32, items = to.columns / 8;
  const PackedGroup<Type> from = {gpu::cast<const uint32_t>(w.data + group * w.stride), blocks};
  // Item i: a block of both halves and both quads by turns, so that a warp's accesses are of whole sectors.
  HalfQuad<Type> next;
  const auto load = [&](int i) {
    if (i / 4 < blocks) next.load(from, i / 4, i % 2, i / 2 % 2);
  };
  load(gpu::thread());

  const int records = static_cast<int>(block_layout(Type).records(blocks));
  float most = 0;
  for (int i = gpu::thread() / 8; i < records; i += prepare_threads / 8) {
    const float bound = record_bound<Type>(from, i, gpu::thread() % 8);
    most = bound > most ? bound : most;
  }
  for (int mask = 8; mask < 32; mask *= 2) {
    const float other = gpu::shfl_xor(most, mask);
    most = other > most ? other : most;
  }
  if (gpu::lane() < 8) parts[gpu::warp() * 8 + gpu::lane()] = gpu::to_bits(most);
  gpu::sync();
  float power[4];
  GPU_UNROLL
  for (int row = 0; row < 4; ++row) {
    const int r = gpu::thread() / 2 % 2 * 4 + row;
    uint32_t bits = 0;
    GPU_UNROLL
    for (int i = 0; i < prepare_warps; ++i) {
      const uint32_t part = parts[i * 8 + r];
      bits = part > bits ? part : bits;
    }
    power[row] = weight_powers(bits).scale;
  }
  gpu::wait_for_inputs();
  if (gpu::thread() == 0 || gpu::thread() == 2) {  // one for each quad
    GPU_UNROLL
    for (int row = 0; row < 4; ++row)
      to.undo[first + gpu::thread() * 2 + row] = gpu::from_bits((254u << 23) - gpu::to_bits(power[row]));
  }
  for (int i = gpu::thread(); i < items; i += prepare_threads) {
    const HalfQuad<Type> here = next;
    load(i + prepare_threads);
    const int b = i / 4, column = 32 * b + i % 2 * 8;
    GPU_UNROLL
    for (int row = 0; row < 4; ++row) {
      const int64_t out = first + i / 2 % 2 * 4 + row;
      GPU_UNROLL
      for (int up = 0; up < 2; ++up)
        gpu::store16(to.at(out, column + 16 * up),
                     b < blocks ? here.decode(b, up, row, power[row]) : gpu::U4{0, 0, 0, 0});
    }
  }
}

// Eight rows of bfloats, a warp each.
template <DType Type>
GPU_FN void prepare_rows(const Matrix<Type>& w, int group, const HalvesRows& to, int first) {
  const int row = group * 8 + gpu::warp();
  const auto from = w.data + (row < w.rows ? row : w.rows - 1) * w.stride;
  const auto load = [&](int c, Four& low, Four& high) {
    const gpu::U4 v = c < w.columns ? gpu::load16(from + 2 * c) : gpu::U4{0, 0, 0, 0};
    const uint32_t words[] = {v.x, v.y, v.z, v.w};
    GPU_UNROLL
    for (int i = 0; i < 8; ++i)
      (i < 4 ? low : high).x[i % 4] = gpu::bfloat_from(static_cast<uint16_t>(words[i / 2] >> i % 2 * 16));
  };
  uint32_t most = 0;
  Four low, high;
  for (int c = 8 * gpu::lane(); c < w.columns; c += 256) {
    load(c, low, high);
    most = most_bits(most_bits(most, low), high);
  }
  const Powers power = weight_powers(warp_max_bits(most));
  gpu::wait_for_inputs();
  if (gpu::lane() == 0) to.undo[first + gpu::warp()] = power.undo;
  for (int c = 8 * gpu::lane(); c < to.columns; c += 256) {
    load(c, low, high);
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) low.x[i] *= power.scale, high.x[i] *= power.scale;
    gpu::store16(to.at(first + gpu::warp(), c), eight_halves(low, high));
  }
}

// The first `tokens` blocks have a token each, the others a group of weights, from `first_group` on.
template <DType Type, class Inputs>
GPU_KERNEL void prepare_halves(Inputs inputs, HalvesRows x, int tokens, Matrix<Type> w, HalvesRows slab,
                               int first_group) {
  if (gpu::block() < tokens) {
    gpu::wait_for_inputs();
    prepare_token(inputs, static_cast<int>(gpu::block()), x, w.columns);
    return;
  }
  const int in = static_cast<int>(gpu::block()) - tokens;
  if constexpr (has_blocks(Type)) prepare_group(w, first_group + in, slab, 8 * in);
  if constexpr (Type == DType::bf16) prepare_rows(w, first_group + in, slab, 8 * in);
}

}  // namespace consonant::GPU_BUILD::mma
