// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of few tokens, for one matrix, for several of the same input, or for two that are gated: bound by reading
// the weights once.
//
// Warps are teams; a team has a tile of 16 rows, and each of its warps every n-th unit of 256 columns. A warp asks for
// its next weights as soon as a place in shared memory is free, and for the first ones before the kernel waits for its
// inputs. The units' products are added in their order by the block's threads.
//
// The code is short rather than unrolled, but for the innermost products: a decoded token is a chain of kernels, each
// of which finds another's instructions in its processor's cache and has to fetch its own.
#include "ops/activation_gpu.hpp"
#include "ops/linear/mma_one.hpp"
#include "ops/rms_norm/rms_norm_gpu.hpp"

namespace consonant::GPU_BUILD::mma {

// Rows of a matrix that lie `stride` elements apart.
template <class T>
struct Lines {
  gpu::Ptr<T> data;
  int64_t stride;

  GPU_FN gpu::Ptr<T> row(int i) const { return data + i * stride; }
};

// Activations, normalised by their root mean square where there is a weight for it.
struct NormedInputs {
  Lines<const float> x;
  gpu::Ptr<const float> weight;  // or null
  float epsilon;
  int columns;
  bool aligned;  // rows of x to 16 bytes

  GPU_FN gpu::Ptr<const float> row(int token) const { return x.row(token); }
};

// Element i of three that are arguments of a kernel, which then stay where arguments are.
template <class T>
GPU_FN T one_of(const T (&three)[3], int i) {
  return i == 0 ? three[0] : i == 1 ? three[1] : three[2];
}

// The matrices' rows one after another, or two matrices side by side. All have the same columns.
template <DType Type>
struct Matrices {
  Matrix<Type> all[3];
  int first[3];  // tile of each, if one after another; behind the last one where there is none
};

struct ProductOutputs {
  Lines<float> y[3];
  gpu::Ptr<const float> bias[3];  // or null
  Lines<const float> residual;    // of a single product; data null: none
  Activation activation;          // of the first of two side by side

  GPU_FN void store(int matrix, int row, int token, float sum) const {
    if (const auto added = one_of(bias, matrix)) sum = gpu::add(sum, added[row]);
    if (residual.data) sum = gpu::add(sum, residual.row(token)[row]);
    one_of(y, matrix).row(token)[row] = sum;
  }
  GPU_FN void store_gated(int row, int token, float gate, float sum) const {
    const float active =
        activation == Activation::silu ? activated<Activation::silu>(gate) : activated<Activation::gelu>(gate);
    y[0].row(token)[row] = active * sum;
  }
};

// How a launch is cut, the same for all of its blocks, and where things are in a block's shared memory, in bytes.
struct FewShape {
  int tokens;
  int units;  // of a row
  int tiles;
  int team = 1;   // warps that share a tile
  int teams = 1;  // of a block
  int records_at = 0, undo_at = 0, row_at = 0, squares_at = 0, sums_at = 0, end = 0;
};

constexpr int few_warps = 8;   // of a block
constexpr int few_stages = 2;  // units that a warp asks for ahead

template <DType Type, int Together>
constexpr void place(FewShape& s) {
  const int pairs = s.tokens * s.units;
  s.records_at = few_warps * few_stages * UnitLayout<Type>::bytes;
  s.undo_at = s.records_at + pairs * record_bytes<Type>;
  s.row_at = s.undo_at + (pairs * 4 + 15) / 16 * 16;
  s.squares_at = s.row_at + (s.tokens == 1 ? s.units * unit_columns * 4 : 0);
  s.sums_at = s.squares_at + ((pairs > 2 * s.tokens ? pairs : 2 * s.tokens) * 4 + 15) / 16 * 16;
  s.end = s.sums_at + 2 * Together * s.teams * pairs * 64;
}

// What a warp asks for, one unit after another.
template <DType Type, int Together>
struct FewQueue {
  const Matrices<Type>& w;
  const FewShape& s;
  TileSource<Type> source;
  int tile, matrix = 0, unit;

  int step;  // from a tile to the next

  GPU_FN FewQueue(const Matrices<Type>& w, const FewShape& s, int block, int blocks) : w(w), s(s) {
    const int team = gpu::warp() / s.team;
    tile = team < s.teams ? block * s.teams + team : s.tiles;
    unit = gpu::warp() % s.team, step = blocks * s.teams;
    find();
  }
  GPU_FN void request(gpu::Shared<uint8_t> to) {
    if (tile < s.tiles) {
      source.request(unit, to);
      unit += s.team;
      if (unit >= s.units) next_tile();
    }
    end_batch();
  }
  GPU_FN static int matrix_of(const Matrices<Type>& w, int tile) {
    return tile >= w.first[2] ? 2 : tile >= w.first[1] ? 1 : 0;
  }

 private:
  GPU_FN void next_tile() {
    unit = gpu::warp() % s.team;
    if (++matrix == Together) matrix = 0, tile += step;
    find();
  }
  GPU_FN void find() {
    if (tile >= s.tiles) return;
    const int which = Together == 2 ? matrix : matrix_of(w, tile);
    source = TileSource<Type>(one_of(w.all, which), Together == 2 ? tile : tile - one_of(w.first, which));
  }
};

// Adds the units' products of the teams' tiles, from `first` on, in their order.
template <DType Type, int Together, class Outputs>
GPU_FN void store_tiles(const Matrices<Type>& w, const FewShape& s, int first, gpu::Shared<const float> sums,
                        gpu::Shared<const float> undo, const Outputs& outputs) {
  const int numbers = 16 * s.tokens;  // of a unit
  GPU_UNROLL_BY(1)
  for (int team = gpu::warp(); team < s.teams; team += few_warps) {
    const int tile = first + team;
    if (tile >= s.tiles) break;
    const int which = Together == 2 ? 0 : FewQueue<Type, Together>::matrix_of(w, tile);
    const int row = (Together == 2 ? tile : tile - one_of(w.first, which)) * 16 + gpu::lane() % 16;
    GPU_UNROLL_BY(1)
    for (int o = gpu::lane(); o < numbers; o += 32) {
      const int token = o / 16;
      float total[Together];
      GPU_UNROLL
      for (int m = 0; m < Together; ++m) {
        auto from = sums + ((team * Together + m) * s.units * numbers + o);
        auto by = undo + token;
        float sum = 0;
        GPU_UNROLL_BY(4)
        for (int unit = 0; unit < s.units; ++unit, from = from + numbers, by = by + s.tokens)
          sum = gpu::fma(*from, *by, sum);
        total[m] = sum;
      }
      if (row >= one_of(w.all, which).rows) continue;
      if constexpr (Together == 2)
        outputs.store_gated(row, token, total[0], total[1]);
      else
        outputs.store(which, row, token, total[0]);
    }
  }
}

// A block's records, [unit][token]. A single row comes to shared memory, where its squares are added up as rms_norm
// does it. Of several, each unit of a token is a warp's.
template <DType Type, class Inputs>
struct FewRecords {
  const Inputs& in;
  const FewShape& s;
  gpu::Shared<uint8_t> shared;

  GPU_FN void make_one() const {
    copy_row(in.row(0));
    float scale = 1;
    if (in.weight) {
      add_squares_of_row();
      gpu::sync();
      scale = scale_of(0);
    }
    GPU_UNROLL_BY(1)
    for (int unit = gpu::warp(); unit < s.units; unit += few_warps) {
      Four x[2];
      GPU_UNROLL
      for (int i = 0; i < 2; ++i) x[i] = four_of(gpu::load16(row() + lane_column<Type>(unit, i)));
      store(unit, 0, x, scale);
    }
  }
  GPU_FN void make_all() const {
    if (in.weight) {
      add_squares();
      gpu::sync();
    }
    const int pairs = s.units * s.tokens;
    Four x[2];
    if (gpu::warp() < pairs) load(gpu::warp(), x);
    GPU_UNROLL_BY(1)
    for (int pair = gpu::warp(); pair < pairs; pair += few_warps) {
      Four now[2] = {x[0], x[1]};
      if (pair + few_warps < pairs) load(pair + few_warps, x);  // while this one is worked on
      const int token = pair % s.tokens;
      store(pair / s.tokens, token, now, in.weight ? scale_of(token) : 1);
    }
  }

 private:
  GPU_FN gpu::Shared<float> row() const { return gpu::cast<float>(shared + s.row_at); }
  GPU_FN gpu::Shared<float> squares() const { return gpu::cast<float>(shared + s.squares_at); }
  GPU_FN bool is_short() const { return in.columns <= short_norm; }
  GPU_FN int parts() const { return is_short() ? short_norm_threads / 32 : s.units; }  // whose squares are summed

  GPU_FN void copy_row(gpu::Ptr<const float> from) const {
    const auto to = row();
    if (in.aligned) {
      GPU_UNROLL_BY(1)
      for (int i = 4 * gpu::thread(); i < s.units * unit_columns; i += 4 * few_warps * 32) {
        const int left = in.columns - i;
        copy_part16(gpu::cast<uint8_t>(to + i), gpu::cast<const uint8_t>(from + (left > 0 ? i : 0)), 4 * left);
      }
    } else {
      GPU_UNROLL_BY(1)
      for (int i = gpu::thread(); i < s.units * unit_columns; i += few_warps * 32) {
        if (i < in.columns)
          copy4(to + i, from + i);
        else
          to[i] = 0;
      }
    }
    end_batch();
    wait_for_batches<0>();
    gpu::sync();
  }
  GPU_FN void load(int pair, Four (&x)[2]) const {
    GPU_UNROLL
    for (int i = 0; i < 2; ++i)
      x[i] = load_four(in.row(pair % s.tokens), lane_column<Type>(pair / s.tokens, i), in.columns, in.aligned);
  }
  template <class Row>
  GPU_FN float short_squares(const Row& row, int part) const {
    float sum = 0;
    GPU_UNROLL_BY(1)
    for (int i = 32 * part + gpu::lane(); i < in.columns; i += short_norm_threads) sum += row[i] * row[i];
    return gpu::warp_sum(sum);
  }
  GPU_FN void add_squares_of_row() const {
    static_assert(norm_unit == unit_columns);
    GPU_UNROLL_BY(1)
    for (int part = gpu::warp(); part < parts(); part += few_warps) {
      float sum = 0;
      if (is_short()) {
        sum = short_squares(row(), part);
      } else {
        Four x[2];
        GPU_UNROLL
        for (int i = 0; i < 2; ++i) x[i] = four_of(gpu::load16(row() + norm_column(part, i)));
        sum = unit_squares(x);
      }
      if (gpu::lane() == 0) squares()[part] = sum;
    }
  }
  GPU_FN void add_squares() const {
    const int count = parts() * s.tokens;
    GPU_UNROLL_BY(1)
    for (int at = gpu::warp(); at < count; at += few_warps) {
      const int part = at / s.tokens;
      const auto from = in.row(at % s.tokens);
      float sum = 0;
      if (is_short()) {
        sum = short_squares(from, part);
      } else {
        Four x[2];
        GPU_UNROLL
        for (int i = 0; i < 2; ++i) x[i] = load_four(from, norm_column(part, i), in.columns, in.aligned);
        sum = unit_squares(x);
      }
      if (gpu::lane() == 0) squares()[at] = sum;
    }
  }
  GPU_FN float scale_of(int token) const {
    float sum = 0;
    GPU_UNROLL_BY(4)
    for (int part = 0; part < parts(); ++part) sum += squares()[part * s.tokens + token];
    return norm_scale(sum, in.columns, in.epsilon);
  }
  GPU_FN void store(int unit, int token, Four (&x)[2], float scale) const {
    GPU_UNROLL
    for (int i = 0; i < 2 && in.weight; ++i) {
      const int column = lane_column<Type>(unit, i);
      GPU_UNROLL
      for (int j = 0; j < 4; ++j) {
        const float weight = (has_blocks(Type) ? column : column + j) < in.columns ? in.weight[column + j] : 0;
        x[i].x[j] = x[i].x[j] * scale * weight;
      }
    }
    const int r = unit * s.tokens + token;
    const float undo = make_record<Type>(x, shared + s.records_at + r * record_bytes<Type>);
    if (gpu::lane() == 0) gpu::cast<float>(shared + s.undo_at)[r] = undo;
  }
};

// What block `block` of `blocks` does. Most: of the tokens, 1, 4 or 8; a single one has a form that suits it.
template <DType Type, int Together, int Most, class Inputs, class Outputs>
GPU_FN void multiply_few(const Matrices<Type>& w, const FewShape& s, const Inputs& inputs, const Outputs& outputs,
                         int block, int blocks, gpu::Shared<uint8_t> shared) {
  constexpr int stages = few_stages, bytes = UnitLayout<Type>::bytes;
  constexpr bool one = Most == 1 && has_one<Type>;
  const auto weights = shared + gpu::warp() * stages * bytes;
  const auto records = shared + s.records_at;
  const auto undo = gpu::cast<float>(shared + s.undo_at), sums = gpu::cast<float>(shared + s.sums_at);

  FewQueue<Type, Together> queue(w, s, block, blocks);
  GPU_UNROLL_BY(1)
  for (int i = 0; i < stages; ++i) queue.request(weights + i * bytes);
  if (inputs.weight) {
    GPU_UNROLL_BY(1)
    for (int i = 32 * gpu::thread(); i < inputs.columns; i += 32 * few_warps * 32) gpu::prefetch(inputs.weight + i);
  }

  gpu::wait_for_inputs();
  if constexpr (one)
    FewRecords<Type, Inputs>{inputs, s, shared}.make_one();
  else
    FewRecords<Type, Inputs>{inputs, s, shared}.make_all();
  gpu::sync();

  const int team = gpu::warp() / s.team, teams = s.teams, numbers = 16 * s.tokens;
  int stage = 0;
  for (int first = block * teams, turn = 0; first < s.tiles; first += blocks * teams, turn ^= 1) {
    const auto round = sums + turn * Together * teams * s.units * numbers;
    for (int m = 0; m < Together && team < teams && first + team < s.tiles; ++m) {
      const auto to = round + (team * Together + m) * s.units * numbers;
      for (int unit = gpu::warp() % s.team; unit < s.units; unit += s.team) {
        wait_for_batches<stages - 1>();
        warp_sync();
        const int here = w.all[0].blocks_of(unit);
        const auto record = records + unit * s.tokens * record_bytes<Type>;
        float product[4];
        if constexpr (one)
          unit_product_of_one<Type>(weights + stage * bytes, here, record, to + unit * numbers);
        else
          unit_product<Type, Most>(weights + stage * bytes, here, record, s.tokens, product);
        warp_sync();
        queue.request(weights + stage * bytes);
        stage = stage + 1 < stages ? stage + 1 : 0;
        if constexpr (!one) {
          GPU_UNROLL
          for (int i = 0; i < 4; ++i) {
            const int token = lane_token<Type>(i);
            if (token < s.tokens) to[unit * numbers + token * 16 + gpu::lane() / 4 + i / 2 * 8] = product[i];
          }
        }
      }
    }
    gpu::sync();
    store_tiles<Type, Together>(w, s, first, round, undo, outputs);
  }
}

template <DType Type, int Together, int Most>
GPU_KERNEL void few_products(Matrices<Type> w, FewShape s, NormedInputs inputs, ProductOutputs outputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  multiply_few<Type, Together, Most>(w, s, inputs, outputs, static_cast<int>(gpu::block()),
                                     static_cast<int>(gpu::blocks()), shared);
}

// Products of one input by weights of two types: the first blocks have the ones, the others the others.
template <DType Type>
struct FewPart {
  Matrices<Type> w;
  FewShape s;
  ProductOutputs outputs;
  int blocks;
};

template <DType First, DType Second, int Most>
GPU_KERNEL void few_products_of_two(FewPart<First> first, FewPart<Second> second, NormedInputs inputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  const int block = static_cast<int>(gpu::block());
  if (block < first.blocks)
    multiply_few<First, 1, Most>(first.w, first.s, inputs, first.outputs, block, first.blocks, shared);
  else
    multiply_few<Second, 1, Most>(second.w, second.s, inputs, second.outputs, block - first.blocks, second.blocks,
                                  shared);
}

}  // namespace consonant::GPU_BUILD::mma
