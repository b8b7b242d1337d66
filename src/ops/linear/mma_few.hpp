// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products of few tokens, for one matrix, for several of the same input, or for two that are gated: bound by reading
// the weights once.
//
// Warps are teams; a team has a tile of 16 rows, and each of its warps every n-th unit of 256 columns. A warp asks for
// its next weights as soon as a place in shared memory is free, and for the first ones before the kernel waits for its
// inputs. The units' products are added in their order by the block's threads.
#include "ops/activation_gpu.hpp"
#include "ops/linear/mma_unit.hpp"
#include "ops/rms_norm/rms_norm_gpu.hpp"

namespace consonant::GPU_BUILD::mma {

// Activations, normalised by their root mean square where there is a weight for it. `scales` are the tokens'.
struct NormedInputs {
  PlainInputs plain;
  gpu::Ptr<const float> weight;  // or null
  float epsilon;
  gpu::Shared<const float> scales = {};

  GPU_FN Four load(int token, int column) const {
    Four four = plain.load(token, column);
    if (!weight) return four;
    const float scale = scales[token];
    GPU_UNROLL
    for (int i = 0; i < 4; ++i)
      if (column + i < plain.x.cols) four.x[i] = four.x[i] * scale * weight[column + i];
    return four;
  }
};

// Each token's 1 / sqrt(mean(x^2) + epsilon), by all of a block, for each warp at `scales` of its own, with the bits
// that rms_norm has: its threads' sums, several of them a thread here.
template <int Warps>
GPU_FN void norm_scales(const NormedInputs& inputs, int tokens, gpu::Shared<float> scales) {
  constexpr int here = Warps * 32, most = 1024 / here;
  GPU_SHARED(float, parts, 2 * 32);
  const int cols = static_cast<int>(inputs.plain.x.cols), threads = rms_norm_threads(cols);
  for (int token = 0; token < tokens; ++token) {
    const auto row = inputs.plain.x.row(token);
    const auto to = parts + token % 2 * 32;
    float sums[most];
    GPU_UNROLL
    for (int j = 0; j < most; ++j) {
      const int thread = gpu::thread() + j * here;
      sums[j] = 0;
      if (thread >= threads) continue;
      GPU_UNROLL_BY(4)
      for (int i = thread; i < cols; i += threads) sums[j] += row[i] * row[i];
    }
    GPU_UNROLL
    for (int j = 0; j < most; ++j) {
      const float sum = gpu::warp_sum(sums[j]);
      if (gpu::lane() == 0) to[(gpu::thread() + j * here) / 32] = sum;
    }
    gpu::sync();
    float sum = 0;
    for (int w = 0; w < threads / 32; ++w) sum += to[w];
    if (gpu::lane() == 0) scales[token] = 1 / gpu::sqrt(sum / static_cast<float>(cols) + inputs.epsilon);
  }
  warp_sync();
}

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
  Rows<float> y[3];
  gpu::Ptr<const float> bias[3];  // or null
  Rows<const float> residual;     // of a single product; data null: none
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

// How a launch is cut, the same for all of its blocks.
struct FewShape {
  int tokens;
  int units;  // of a row
  int tiles;
  int team;   // warps that share a tile
  int teams;  // of a block
};

// A block's shared memory, in bytes.
template <DType Type, int Together, int Warps>
struct FewMemory {
  static constexpr int stages = 2;
  int64_t table_at, records_at, undo_at, scales_at, sums_at, end;

  constexpr FewMemory(int64_t tokens, int64_t units, int64_t teams) {
    table_at = int64_t{Warps} * stages * UnitLayout<Type>::bytes;
    records_at = table_at + table_bytes<Type>;
    undo_at = records_at + tokens * units * record_bytes<Type>;
    scales_at = undo_at + (tokens * units * 4 + 15) / 16 * 16;
    sums_at = scales_at + Warps * 32;
    end = sums_at + 2 * Together * teams * units * tokens * 64;
  }
};

// What a warp asks for, one unit after another.
template <DType Type, int Together>
struct FewQueue {
  const Matrices<Type>& w;
  const FewShape& s;
  TileSource<Type> source;
  int tile, matrix = 0, unit;

  int step;  // from a tile to the next

  GPU_FN FewQueue(const Matrices<Type>& w, const FewShape& s, int block, int blocks) : w(w), s(s) {
    tile = block * s.teams + gpu::warp() / s.team, unit = gpu::warp() % s.team, step = blocks * s.teams;
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
template <DType Type, int Together>
GPU_FN void store_tiles(const Matrices<Type>& w, const FewShape& s, int first, gpu::Shared<const float> sums,
                        gpu::Shared<const float> undo, const ProductOutputs& outputs) {
  const int numbers = 16 * s.tokens;  // of a unit
  for (int o = gpu::thread(); o < s.teams * numbers; o += gpu::threads()) {
    const int team = o / numbers, in_tile = o - team * numbers, token = in_tile / 16, tile = first + team;
    if (tile >= s.tiles) continue;
    float total[Together];
    GPU_UNROLL
    for (int m = 0; m < Together; ++m) {
      const auto from = sums + (team * Together + m) * s.units * numbers + in_tile;
      float sum = 0;
      GPU_UNROLL_BY(8)
      for (int unit = 0; unit < s.units; ++unit)
        sum = gpu::fma(from[unit * numbers], undo[unit * s.tokens + token], sum);
      total[m] = sum;
    }
    const int which = Together == 2 ? 0 : FewQueue<Type, Together>::matrix_of(w, tile);
    const int row = (Together == 2 ? tile : tile - one_of(w.first, which)) * 16 + in_tile % 16;
    if (row >= one_of(w.all, which).rows) continue;
    if constexpr (Together == 2)
      outputs.store_gated(row, token, total[0], total[1]);
    else
      outputs.store(which, row, token, total[0]);
  }
}

// What block `block` of `blocks` does.
template <DType Type, int Together, int Warps>
GPU_FN void multiply_few(const Matrices<Type>& w, const FewShape& s, NormedInputs inputs, const ProductOutputs& outputs,
                         int block, int blocks, gpu::Shared<uint8_t> shared) {
  using Memory = FewMemory<Type, Together, Warps>;
  constexpr int stages = Memory::stages, bytes = UnitLayout<Type>::bytes;
  const Memory memory(s.tokens, s.units, s.teams);
  const auto weights = shared + gpu::warp() * stages * bytes;
  const auto records = shared + memory.records_at;
  const auto table = gpu::cast<uint32_t>(shared + memory.table_at);
  const auto undo = gpu::cast<float>(shared + memory.undo_at), scales = gpu::cast<float>(shared + memory.scales_at);
  const auto sums = gpu::cast<float>(shared + memory.sums_at);

  FewQueue<Type, Together> queue(w, s, block, blocks);
  for (int i = 0; i < stages; ++i) queue.request(weights + i * bytes);
  make_scale_table<Type>(table);
  if (inputs.weight)
    for (int i = 32 * gpu::thread(); i < inputs.plain.x.cols; i += 32 * gpu::threads())
      gpu::prefetch(inputs.weight + i);

  gpu::wait_for_inputs();
  inputs.scales = scales + gpu::warp() * 8;
  if (inputs.weight) norm_scales<Warps>(inputs, s.tokens, scales + gpu::warp() * 8);
  for (int r = gpu::warp(); r < s.units * s.tokens; r += Warps) {
    const float power = make_record<Type>(inputs, r % s.tokens, r / s.tokens, records + r * record_bytes<Type>);
    if (gpu::lane() == 0) undo[r] = power;
  }
  gpu::sync();

  const int g = gpu::lane() / 4, t = gpu::lane() % 4, token = g < s.tokens ? g : s.tokens - 1;
  const int team = gpu::warp() / s.team, teams = s.teams, numbers = 16 * s.tokens;
  int stage = 0;
  for (int first = block * teams, turn = 0; first < s.tiles; first += blocks * teams, turn ^= 1) {
    const auto round = sums + turn * Together * teams * s.units * numbers;
    for (int m = 0; m < Together && first + team < s.tiles; ++m) {
      const auto to = round + (team * Together + m) * s.units * numbers;
      for (int unit = gpu::warp() % s.team; unit < s.units; unit += s.team) {
        wait_for_batches<stages - 1>();
        warp_sync();
        float product[4];
        unit_product<Type>(weights + stage * bytes, w.all[0].blocks_of(unit),
                           records + (unit * s.tokens + token) * record_bytes<Type>, table, product);
        warp_sync();
        queue.request(weights + stage * bytes);
        stage = stage + 1 < stages ? stage + 1 : 0;
        GPU_UNROLL
        for (int i = 0; i < 4; ++i)
          if (2 * t + i % 2 < s.tokens) to[unit * numbers + (2 * t + i % 2) * 16 + g + i / 2 * 8] = product[i];
      }
    }
    gpu::sync();
    store_tiles<Type, Together>(w, s, first, round, undo, outputs);
  }
}

template <DType Type, int Together, int Warps>
GPU_KERNEL void few_products(Matrices<Type> w, FewShape s, NormedInputs inputs, ProductOutputs outputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  multiply_few<Type, Together, Warps>(w, s, inputs, outputs, static_cast<int>(gpu::block()),
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

template <DType First, DType Second, int Warps>
GPU_KERNEL void few_products_of_two(FewPart<First> first, FewPart<Second> second, NormedInputs inputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  const int block = static_cast<int>(gpu::block());
  if (block < first.blocks)
    multiply_few<First, 1, Warps>(first.w, first.s, inputs, first.outputs, block, first.blocks, shared);
  else
    multiply_few<Second, 1, Warps>(second.w, second.s, inputs, second.outputs, block - first.blocks, second.blocks,
                                   shared);
}

}  // namespace consonant::GPU_BUILD::mma
