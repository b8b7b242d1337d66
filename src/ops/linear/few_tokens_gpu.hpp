// SPDX-License-Identifier: Apache-2.0
#pragma once

// The product for few tokens: bound by reading the weights, each once. A thread has a chain of four rows; neighbouring
// threads read neighbouring bytes, and ask for a unit while they multiply the one before. Activations lie in shared
// memory, where a value serves four rows.
#include "ops/linear/product_gpu.hpp"

namespace consonant::GPU_BUILD {

constexpr int few_threads = 256;

// Shared memory of a block of threads.
struct FewTokens {
  int rounds;                    // groups of eight rows that a team of threads goes through
  int64_t staged;                // elements of each token's x that are held at once: a multiple of 32
  int rows;                      // of a block of threads, over all rounds
  int64_t x_floats, sum_floats;  // of a token
  int64_t shared_bytes;
};

template <DType Type>
int64_t rows_a_round(const Product<Type>& p) {
  return few_threads / (2 << p.chain_bits) * 8;
}

template <DType Type, int Tokens>
FewTokens plan_few(const Product<Type>& p, int rounds, const Limits& limits) {
  using Unit = ProductUnit<Type>;
  constexpr auto size = static_cast<int64_t>(sizeof(float));
  FewTokens few = {};
  few.rounds = rounds;
  few.rows = static_cast<int>(rounds * rows_a_round(p));
  const int64_t parts = Tokens * few.rows * ((1 << p.chain_bits) + 1) * size;
  constexpr int64_t block_floats = 36 + (Unit::minimum ? Unit::halves : 0);  // for 32 elements of a token
  const int64_t room = std::min<int64_t>(limits.shared_bytes, 72 * 1024) - parts;
  few.staged = 32 * std::min(ceil_div(p.k, 32), room / (Tokens * block_floats * size));
  few.x_floats = few.staged / 32 * 36, few.sum_floats = few.staged / 32 * (block_floats - 36);
  few.shared_bytes = Tokens * (few.x_floats + few.sum_floats) * size + parts;
  return few;
}

// Between blocks of 32 floats are four unused ones: neighbouring units begin in different banks.
GPU_FN int64_t padded(int64_t element) { return element + element / 32 * 4; }

// A unit of four rows, in registers.
template <DType Type, int Tokens, bool Blocks = has_blocks(Type)>
struct QuadUnit {
  using Unit = ProductUnit<Type>;
  gpu::U4 row[4];

  GPU_FN void load(const Product<Type>& p, int64_t quad, int64_t unit) {
    GPU_UNROLL
    for (int r = 0; r < 4; ++r) {
      const int64_t i = quad * 4 + r < p.rows ? quad * 4 + r : p.rows - 1;
      const auto from = p.w + i * p.w_stride;
      row[r] = p.w_whole ? gpu::load16(from + unit * Unit::size) : elements(from, unit * Unit::size, p.k);
    }
  }
  // `x`: the unit's activations, tokens `x_stride` apart.
  GPU_FN void add(gpu::Shared<float> x, int64_t x_stride, gpu::Shared<float>, int64_t, int64_t,
                  float (&chain)[Tokens][4]) const {
    GPU_UNROLL
    for (int e = 0; e < Unit::size; e += 4) {
      Four w[4];
      GPU_UNROLL
      for (int r = 0; r < 4; ++r) GPU_UNROLL
      for (int i = 0; i < 4; ++i) w[r].x[i] = value(row[r], e + i);
      GPU_UNROLL
      for (int t = 0; t < Tokens; ++t) {
        const Four four = load_four(x + t * x_stride + e);
        GPU_UNROLL
        for (int r = 0; r < 4; ++r) GPU_UNROLL
        for (int i = 0; i < 4; ++i) chain[t][r] = gpu::fma(w[r].x[i], four.x[i], chain[t][r]);
      }
    }
  }

 private:
  GPU_FN static uint32_t word(const gpu::U4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
  GPU_FN static float value(const gpu::U4& v, int e) {
    if constexpr (Type == DType::f32)
      return gpu::from_bits(word(v, e));
    else
      return plain_value<Type>(static_cast<uint16_t>(word(v, e / 2) >> e % 2 * 16));
  }
  GPU_FN static gpu::U4 elements(gpu::Ptr<const typename Unit::Word> from, int64_t first, int64_t k) {
    uint32_t words[4] = {0, 0, 0, 0};
    GPU_UNROLL
    for (int e = 0; e < Unit::size; ++e) {
      if (first + e >= k) continue;
      if constexpr (Type == DType::f32)
        words[e] = gpu::to_bits(from[first + e]);
      else
        words[e / 2] |= static_cast<uint32_t>(from[first + e]) << e % 2 * 16;
    }
    return {words[0], words[1], words[2], words[3]};
  }
};

template <DType Type, int Tokens>
struct QuadUnit<Type, Tokens, true> {
  static constexpr int halves = ProductUnit<Type>::halves;
  PackedQuad<Type> block;

  GPU_FN void load(const Product<Type>& p, int64_t quad, int64_t unit) {
    block.load({p.w + quad / 2 * p.w_stride, p.k / 32}, unit, static_cast<int>(quad % 2));
  }
  GPU_FN void add(gpu::Shared<float> x, int64_t x_stride, gpu::Shared<float> sums, int64_t sum_stride, int64_t unit,
                  float (&chain)[Tokens][4]) const {
    float dot[Tokens][4][halves] = {};
    GPU_UNROLL
    for (int g = 0; g < 4; ++g) {  // and dword g + 4
      Four low[Tokens], high[Tokens];
      GPU_UNROLL
      for (int t = 0; t < Tokens; ++t) {
        low[t] = load_four(x + t * x_stride + 4 * g);
        high[t] = load_four(x + t * x_stride + 16 + 4 * g);
      }
      GPU_UNROLL
      for (int r = 0; r < 4; ++r) {
        const Eight q = block.template numbers_of<ProductUnit<Type>::middle>(g, r);
        GPU_UNROLL
        for (int t = 0; t < Tokens; ++t) {
          GPU_UNROLL
          for (int i = 0; i < 4; ++i) dot[t][r][0] = gpu::fma(q.low.x[i], low[t].x[i], dot[t][r][0]);
          GPU_UNROLL
          for (int i = 0; i < 4; ++i)
            dot[t][r][halves - 1] = gpu::fma(q.high.x[i], high[t].x[i], dot[t][r][halves - 1]);
        }
      }
    }
    GPU_UNROLL
    for (int r = 0; r < 4; ++r) GPU_UNROLL
    for (int h = 0; h < halves; ++h) {
      const ScaleMin s = ProductUnit<Type>::from_middle(block.scale_min(unit, h, r));
      GPU_UNROLL
      for (int t = 0; t < Tokens; ++t) {
        chain[t][r] = gpu::fma(s.scale, dot[t][r][h], chain[t][r]);
        if constexpr (ProductUnit<Type>::minimum)
          chain[t][r] = gpu::fma(s.min, static_cast<float>(sums[t * sum_stride + h]), chain[t][r]);
      }
    }
  }
};

// Copies elements first ... first + staged - 1 of the tokens' x to shared memory, and the units' sums.
template <DType Type, int Tokens>
GPU_FN void stage(const Product<Type>& p, const FewTokens& few, int64_t first_token, int64_t first,
                  gpu::Shared<float> x, gpu::Shared<float> sums) {
  using Unit = ProductUnit<Type>;
  const int64_t left = p.k - first, elements = left < few.staged ? left : few.staged;
  GPU_UNROLL
  for (int t = 0; t < Tokens; ++t)
    for (int64_t i = 0; i < elements; i += 4 * few_threads) {  // the same for all threads: they shuffle
      const int64_t e = i + 4 * gpu::thread();
      const Four four = p.activations(first_token + t, first + e);
      if (e < few.staged) store_four(x + t * few.x_floats + padded(e), four);
      if constexpr (Unit::minimum) {
        const float sum = unit_sum<Type>(four);
        if (e < few.staged && e % (32 / Unit::halves) == 0) sums[t * few.sum_floats + e / (32 / Unit::halves)] = sum;
      }
    }
}

// Sums up the chains and writes y.
template <DType Type, int Tokens>
GPU_FN void finish_few(const Product<Type>& p, const FewTokens& few, int64_t first_token, gpu::Shared<float> parts) {
  for (int i = gpu::thread(); i < few.rows * Tokens; i += few_threads) {
    const int64_t row = gpu::block() * few.rows + i % few.rows;
    const auto of_row = parts + static_cast<int64_t>(i) * (p.chains() + 1);
    float sum = 0;
    for (int c = 0; c < p.chains(); ++c) sum = gpu::add(sum, of_row[c]);
    p.finish(first_token + i / few.rows, row, sum);
  }
}

// A block's part: the tokens from `first_token` on.
template <DType Type, int Tokens>
GPU_FN void multiply_few(const Product<Type>& p, const FewTokens& few, int64_t first_token) {
  using Unit = ProductUnit<Type>;
  GPU_DYNAMIC_SHARED(float, x);
  const auto sums = x + Tokens * few.x_floats, parts = sums + Tokens * few.sum_floats;

  // A team has all chains of a group of eight rows. A block's rows lie together four by four; in a plain matrix
  // neighbouring units do.
  const int in_team = gpu::thread() & (2 * p.chains() - 1), team = gpu::thread() >> (p.chain_bits + 1);
  const int chain = has_blocks(Type) ? in_team / 2 : in_team & (p.chains() - 1);
  const int half = has_blocks(Type) ? in_team % 2 : in_team >> p.chain_bits;
  const int teams = few_threads >> (p.chain_bits + 1);
  const int64_t units = p.units();

  for (int round = 0; round < few.rounds; ++round) {
    const int group = round * teams + team;
    const int64_t quad = gpu::block() * (few.rows / 4) + group * 2 + half;
    const bool mine = quad * 4 < p.rows;
    float sum[Tokens][4] = {};
    QuadUnit<Type, Tokens> next;
    int64_t unit = chain;
    if (mine && unit < units) next.load(p, quad, unit);
    for (int64_t first = 0; first < p.k; first += few.staged) {
      if (round == 0 || few.staged < p.k) {
        if (round > 0 || first > 0)
          gpu::sync();
        else
          gpu::wait_for_inputs();
        stage<Type, Tokens>(p, few, first_token, first, x, sums);
        gpu::sync();
      }
      while (mine && unit < units && unit * Unit::size < first + few.staged) {
        const QuadUnit<Type, Tokens> now = next;
        const int64_t e = unit * Unit::size - first, at = unit;
        unit += p.chains();
        if (unit < units) next.load(p, quad, unit);
        now.add(x + padded(e), few.x_floats, sums + e / (32 / Unit::halves), few.sum_floats, at, sum);
      }
    }
    if (p.k == 0) gpu::wait_for_inputs();
    GPU_UNROLL
    for (int t = 0; t < Tokens; ++t) GPU_UNROLL
    for (int r = 0; r < 4; ++r) parts[(t * few.rows + group * 8 + half * 4 + r) * (p.chains() + 1) + chain] = sum[t][r];
  }
  gpu::sync();
  finish_few<Type, Tokens>(p, few, first_token, parts);
}

template <DType Type, int Tokens>
GPU_KERNEL void few_tokens(Product<Type> p, FewTokens few) {
  multiply_few<Type, Tokens>(p, few, gpu::block_y() * Tokens);
}

}  // namespace consonant::GPU_BUILD
