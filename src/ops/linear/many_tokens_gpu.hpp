// SPDX-License-Identifier: Apache-2.0
#pragma once

// The product for many tokens: bound by float32 multiplications. A block of threads has a tile of 64 rows by 64 tokens,
// a thread four by four of it. It takes the chains one after the other and, of each, 32 elements a step; while a step
// is multiplied, the next one's bytes are on their way.
#include "ops/linear/product_gpu.hpp"

namespace consonant::GPU_BUILD {

constexpr int tile_threads = 256, tile_side = 64, tile_depth = 32;

// A step's numbers in shared memory, [element][row or token]. Fours of neighbouring rows are exchanged by the element's
// dword, so that threads which hold neighbouring dwords write to different banks.
GPU_FN int tile_at(int element, int i) { return element * tile_side + (i ^ element / 4 % 8 * 4); }

struct TileBuffer {
  gpu::Shared<float> w, x, scale, min, sums;  // scales and sums: [half][row or token]
};

// Which elements a step has: the units `unit`, `unit` + chains, ... of a chain.
struct TileStep {
  int chain = 0;
  int64_t unit = 0;
};

template <DType Type>
GPU_FN TileStep after(const Product<Type>& p, TileStep step) {
  step.unit += static_cast<int64_t>(tile_depth / Product<Type>::Unit::size) << p.chain_bits;
  if (step.unit >= p.units()) step.unit = ++step.chain;
  return step;
}

// The first of the four elements of a step's dword g.
template <DType Type>
GPU_FN int64_t element_of(const Product<Type>& p, const TileStep& step, int g) {
  constexpr int size = Product<Type>::Unit::size;
  return (step.unit + (static_cast<int64_t>(4 * g / size) << p.chain_bits)) * size + 4 * g % size;
}

// What a thread brings of a step's weights: of a plain matrix dword g = thread % 8 of two rows.
template <DType Type, bool Blocks = has_blocks(Type)>
struct TileWeights {
  using Word = typename ProductUnit<Type>::Word;
  Word stored[2][4];

  GPU_FN void load(const Product<Type>& p, int64_t first_row, const TileStep& step) {
    const int64_t e = element_of(p, step, gpu::thread() % 8);
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) {
      const int64_t row = first_row + gpu::thread() / 8 + j * 32;
      const auto from = p.w + (row < p.rows ? row : p.rows - 1) * p.w_stride;
      if (p.w_whole && e < p.k) {
        if constexpr (Type == DType::f32) {
          const gpu::U4 v = gpu::load16(from + e);
          stored[j][0] = gpu::from_bits(v.x), stored[j][1] = gpu::from_bits(v.y);
          stored[j][2] = gpu::from_bits(v.z), stored[j][3] = gpu::from_bits(v.w);
        } else {
          const auto words = gpu::cast<const uint32_t>(from + e);
          GPU_UNROLL
          for (int i = 0; i < 4; ++i) stored[j][i] = static_cast<uint16_t>(words[i / 2] >> i % 2 * 16);
        }
        continue;
      }
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) stored[j][i] = e + i < p.k ? static_cast<Word>(from[e + i]) : Word{};
    }
  }
  GPU_FN void store(const TileBuffer& to, const TileStep&) const {
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) GPU_UNROLL
    for (int i = 0; i < 4; ++i)
      to.w[tile_at(gpu::thread() % 8 * 4 + i, gpu::thread() / 8 + j * 32)] = plain_value<Type>(stored[j][i]);
  }
};

// Of blocks: dwords g and g + 4 (g = thread / 64) of one row, and some threads a scale.
template <DType Type>
struct TileWeights<Type, true> {
  using Group = PackedGroup<Type>;
  using At = RecordAt<Type>;
  static constexpr BlockLayout layout = Group::layout;
  static constexpr int halves = ProductUnit<Type>::halves;

  uint32_t base[2], upper[2], d, m, s, t;

  GPU_FN static bool has_scale() { return gpu::thread() < tile_side * halves; }

  GPU_FN void load(const Product<Type>& p, int64_t first_row, const TileStep& step) {
    int64_t row = first_row + gpu::thread() % tile_side;
    if (row >= p.rows) row = p.rows - 1;
    const int r = static_cast<int>(row % 8), g = gpu::thread() / tile_side;
    const Group group = {p.w + row / 8 * p.w_stride, p.k / 32};
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) {
      base[j] = group.words[group.base_at(step.unit) + plane_word<layout.base_bits>(g + 4 * j) * 8 + r];
      if constexpr (layout.upper_bits != 0)
        upper[j] = group.words[group.upper_at(step.unit) + plane_word<layout.upper_bits>(g + 4 * j) * 8 + r];
    }
    if (!has_scale()) return;
    const uint32_t record = group.record_at(step.unit);
    const int block = static_cast<int>(step.unit & 7), h = g;
    if constexpr (At::has_d) d = group.words[record + r / 2];
    if constexpr (At::has_m) m = group.words[record + At::m + r / 2];
    if constexpr (At::has_s) s = group.words[record + At::s(block, h) + r / 4];
    if constexpr (At::has_t) t = group.words[record + At::t(block, h) + r / 4];
  }

  GPU_FN void store(const TileBuffer& to, const TileStep& step) const {
    const int row = gpu::thread() % tile_side, g = gpu::thread() / tile_side;
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) {
      uint32_t q = plane_bits<layout.base_bits>(base[j], g + 4 * j);
      if constexpr (layout.upper_bits != 0) q |= plane_bits<layout.upper_bits>(upper[j], g + 4 * j) << layout.base_bits;
      const Four four = numbers<Type, ProductUnit<Type>::middle>(q);
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) to.w[tile_at(dword_order<Type>(g + 4 * j) * 4 + i, row)] = four.x[i];
    }
    if (!has_scale()) return;
    const int r = row % 8, h = g;  // tiles begin with a group
    float scale = 0, min = 0;
    uint32_t bytes = 0, more = 0;
    if constexpr (At::has_d) scale = gpu::from_half(static_cast<uint16_t>(d >> r % 2 * 16));
    if constexpr (At::has_m) min = gpu::from_half(static_cast<uint16_t>(m >> r % 2 * 16));
    if constexpr (At::has_t) more = t;
    if constexpr (At::has_s) bytes = scale_bytes<Type>(s, more, static_cast<int>(step.unit & 7), h);
    const ScaleMin both = ProductUnit<Type>::from_middle(scale_of<Type>(scale, min, bytes, more, r % 4));
    to.scale[h * tile_side + row] = both.scale;
    if constexpr (Group::minimum) to.min[h * tile_side + row] = both.min;
  }
};

// And of its activations: dword g = thread % 8 of two tokens.
template <DType Type>
struct TileActivations {
  Four four[2];

  template <class P>
  GPU_FN void load(const P& p, int64_t first_token, const TileStep& step) {
    GPU_UNROLL
    for (int j = 0; j < 2; ++j)
      four[j] = p.activations(first_token + gpu::thread() / 8 + j * 32, element_of(p, step, gpu::thread() % 8));
  }
  GPU_FN void store(const TileBuffer& to) const {
    constexpr int halves = ProductUnit<Type>::halves;
    const int g = gpu::thread() % 8;
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) {
      const int token = gpu::thread() / 8 + j * 32;
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) to.x[tile_at(dword_order<Type>(g) * 4 + i, token)] = four[j].x[i];
      if constexpr (ProductUnit<Type>::minimum) {
        const float sum = unit_sum<Type>(four[j]);
        if (g % (8 / halves) == 0) to.sums[g / (8 / halves) * tile_side + token] = sum;
      }
    }
  }
};

// Adds a step's product of the thread's tokens ([0]: 4 * (thread / 16)) and rows (4 * (thread % 16)) to their chains.
template <DType Type>
GPU_FN void multiply(const TileBuffer& from, float (&chain)[4][4]) {
  constexpr bool blocks = has_blocks(Type);
  constexpr int halves = ProductUnit<Type>::halves, depth = tile_depth / halves;
  const int token = gpu::thread() / 16 * 4, row = gpu::thread() % 16 * 4;
  GPU_UNROLL
  for (int h = 0; h < halves; ++h) {
    float dot[4][4] = {};
    GPU_UNROLL
    for (int g = h * depth / 4; g < (h + 1) * depth / 4; ++g) {
      const auto xs = from.x + tile_at(4 * g, token), ws = from.w + tile_at(4 * g, row);
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) {
        const Four x = load_four(xs + i * tile_side), w = load_four(ws + i * tile_side);
        GPU_UNROLL
        for (int t = 0; t < 4; ++t) GPU_UNROLL
        for (int r = 0; r < 4; ++r) {
          float& sum = blocks ? dot[t][r] : chain[t][r];
          sum = gpu::fma(w.x[r], x.x[t], sum);
        }
      }
    }
    if constexpr (!blocks) continue;
    const Four scale = load_four(from.scale + (h * tile_side + row));
    GPU_UNROLL
    for (int t = 0; t < 4; ++t) GPU_UNROLL
    for (int r = 0; r < 4; ++r) chain[t][r] = gpu::fma(scale.x[r], dot[t][r], chain[t][r]);
    if constexpr (!ProductUnit<Type>::minimum) continue;
    const Four min = load_four(from.min + (h * tile_side + row)), sums = load_four(from.sums + (h * tile_side + token));
    GPU_UNROLL
    for (int t = 0; t < 4; ++t) GPU_UNROLL
    for (int r = 0; r < 4; ++r) chain[t][r] = gpu::fma(min.x[r], sums.x[t], chain[t][r]);
  }
}

// A block's tile. P is a Product<Type>, or has its own idea of where tokens lie.
template <DType Type, class P>
GPU_FN void multiply_tile(const P& p, int64_t first_token, int64_t first_row) {
  constexpr int tile = tile_side * tile_depth, line = tile_side * ProductUnit<Type>::halves;
  GPU_SHARED(float, tiles, 4 * tile);
  GPU_SHARED(float, lines, 6 * line);
  const auto buffer = [&](int i) -> TileBuffer {
    const auto at = lines + i * 3 * line;
    return {tiles + i * 2 * tile, tiles + (i * 2 + 1) * tile, at, at + line, at + 2 * line};
  };

  TileWeights<Type> weights;
  TileActivations<Type> activations;
  const auto load = [&](const TileStep& step) {
    weights.load(p, first_row, step);
    activations.load(p, first_token, step);
  };
  const auto store = [&](int i, const TileStep& step) {
    weights.store(buffer(i), step);
    activations.store(buffer(i));
  };

  float total[4][4] = {}, chain[4][4] = {};
  TileStep step;
  if (p.k > 0) {
    load(step);
    store(0, step);
  }
  for (int current = 0; p.k > 0 && step.chain < p.chains(); current ^= 1) {
    gpu::sync();  // this step's buffer is written, and the other one has been read
    const TileStep next = after(p, step);
    if (next.chain < p.chains()) load(next);
    multiply<Type>(buffer(current), chain);
    if (next.chain != step.chain) {
      GPU_UNROLL
      for (int i = 0; i < 16; ++i) {
        total[i / 4][i % 4] = gpu::add(total[i / 4][i % 4], chain[i / 4][i % 4]);
        chain[i / 4][i % 4] = 0;
      }
    }
    if (next.chain < p.chains()) store(current ^ 1, next);
    step = next;
  }

  GPU_UNROLL
  for (int t = 0; t < 4; ++t) GPU_UNROLL
  for (int r = 0; r < 4; ++r)
    p.finish(first_token + gpu::thread() / 16 * 4 + t, first_row + gpu::thread() % 16 * 4 + r, total[t][r]);
}

template <DType Type>
GPU_KERNEL void many_tokens(Product<Type> p, int64_t token_tiles) {
  multiply_tile<Type>(p, gpu::block() % token_tiles * tile_side, gpu::block() / token_tiles * tile_side);
}

}  // namespace consonant::GPU_BUILD
