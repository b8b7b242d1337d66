// SPDX-License-Identifier: Apache-2.0
#pragma once

// The product of two matrices of halves, y[token][row] = x[token] . w[row], for many tokens: bound by the tensor cores,
// and by shared memory, from which a warp of 64 x 64 reads a byte for every 16 multiplications. A block has a tile of
// tokens by rows; steps of 64 columns come to its shared memory by copies that run some steps ahead.
//
// An output is one chain of products over 16 columns in their order, whatever the tile: all of them give it the same
// bits.
#include "ops/linear/mma_unit.hpp"

namespace consonant::GPU_BUILD::mma {

constexpr int step_columns = 64, step_bytes = 2 * step_columns;  // of a row

// `TokenWarps` x `RowWarps` warps, each with 16 `TokenTiles` tokens by 8 `RowTiles` rows.
template <int TokenWarps, int RowWarps, int TokenTiles, int RowTiles, int Stages>
struct HalvesTiling {
  static constexpr int token_warps = TokenWarps, token_tiles = TokenTiles, row_tiles = RowTiles, stages = Stages;
  static constexpr int warp_tokens = 16 * TokenTiles, warp_rows = 8 * RowTiles;
  static constexpr int tokens = warp_tokens * TokenWarps, rows = warp_rows * RowWarps;
  static constexpr int threads = 32 * TokenWarps * RowWarps, stage_bytes = (tokens + rows) * step_bytes;
  static constexpr int shared_bytes = Stages * stage_bytes;
  static constexpr int exchange_stride = rows + 8;  // of the sums, when all else is done
  static_assert(RowTiles % 2 == 0 && Stages >= 2 && tokens * exchange_stride * 4 <= shared_bytes);
};

// ---- what may be tuned

// Weights are decoded slab by slab, so that what was written is read from the cache: rows of so many bytes, but at
// least so many that their tiles fill the processors. From where on they are: halves_tokens and halves_rows of
// mma_forms.hpp.
constexpr int64_t slab_bytes = 32 << 20, slab_rows = 4096;

using WideTile = HalvesTiling<2, 4, 4, 8, 4>;   // 128 tokens x 256 rows, a block a processor
using EvenTile = HalvesTiling<2, 4, 4, 4, 6>;   // 128 x 128, one
using SmallTile = HalvesTiling<2, 2, 2, 4, 6>;  // 64 x 64, two
// Those that a product chooses from, and what an output of each costs.
template <class T, int Cost>
struct Priced {
  using Tile = T;
  static constexpr int cost = Cost;
};
template <class... Tiles>
struct Choices {};
using TileChoices = Choices<Priced<WideTile, 100>, Priced<EvenTile, 105>, Priced<SmallTile, 150>>;

// Tiles of up to so many neighbours along the tokens run together, before the next rows.
constexpr int tokens_together = 16;

// ----

// Rows of halves, a multiple of 8 columns each. Past them are zeros.
struct HalvesMatrix {
  gpu::Ptr<const uint8_t> data;
  int64_t stride;  // bytes
  int rows, columns;
};

struct HalvesProduct {
  HalvesMatrix x, w;
  gpu::Ptr<const float> x_undo, w_undo;  // what tokens' and rows' results are multiplied with; w_undo null: 1
  int first_row;                         // which row of the node row 0 of w is
  int token_tiles, row_tiles;
};

// Sixteen bytes of a row in a step: rows exchange them so that neither eight lanes that read a column of them nor eight
// that write a row meet a bank twice.
GPU_FN int halves_at(int row, int chunk) { return row * step_bytes + ((chunk ^ (row & 7)) << 4); }

// A thread's share of copying `Rows` rows of a matrix, a step at a time.
template <int Rows, int Threads>
struct HalvesSource {
  static constexpr int rows_at_once = Threads / 8;
  static_assert(Rows % rows_at_once == 0 && rows_at_once % 8 == 0);

  gpu::Ptr<const uint8_t> from;
  int64_t stride;
  int rows, columns;  // that are left from the thread's first one on
  int to;

  GPU_FN HalvesSource(const HalvesMatrix& m, int first_row) {
    const int row = gpu::thread() / 8, chunk = gpu::thread() % 8;
    from = m.data + ((int64_t{first_row} + row) * m.stride + chunk * 16), stride = m.stride;
    rows = m.rows - first_row - row, columns = m.columns - chunk * 8;
    to = halves_at(row, chunk);
  }
  // One of three parts.
  GPU_FN void request(int step, gpu::Shared<uint8_t> stage, int part) const {
    const auto at = from + int64_t{step} * step_bytes;
    const bool here = step * step_columns < columns;
    GPU_UNROLL
    for (int i = 0; i < Rows; i += rows_at_once)
      if (i / rows_at_once % 3 == part) copy16(stage + (to + i * step_bytes), at + i * stride, here && i < rows);
  }
};

// A warp's operands for 16 columns.
template <class T>
struct HalvesOperands {
  uint32_t x[T::token_tiles][4], w[T::row_tiles / 2][4];

  // Of quarter `i` of a step. The lane's offsets are those of quarter 0.
  GPU_FN void load(gpu::Shared<const uint8_t> stage, int x_at, int w_at, int i) {
    GPU_UNROLL
    for (int m = 0; m < T::token_tiles; ++m) load_matrices(x[m], stage, (x_at ^ 32 * i) + 16 * m * step_bytes);
    GPU_UNROLL
    for (int n = 0; n < T::row_tiles / 2; ++n) load_matrices(w[n], stage, (w_at ^ 32 * i) + 16 * n * step_bytes);
  }
  GPU_FN void multiply_into(float (&sums)[T::token_tiles][T::row_tiles][4]) const {
    GPU_UNROLL
    for (int m = 0; m < T::token_tiles; ++m) GPU_UNROLL
    for (int n = 0; n < T::row_tiles; ++n)
      multiply<false>(sums[m][n], x[m], w[n / 2][n % 2 * 2], w[n / 2][n % 2 * 2 + 1]);
  }
};

// Where a block's tile is.
struct HalvesPlace {
  int token, row;
};
template <class T>
GPU_FN HalvesPlace halves_place(const HalvesProduct& p) {
  const int64_t group = int64_t{tokens_together} * p.row_tiles;
  const int first = static_cast<int>(gpu::block() / group) * tokens_together;
  const int in = static_cast<int>(gpu::block() % group), left = p.token_tiles - first;
  const int width = left < tokens_together ? left : tokens_together;
  return {(first + in % width) * T::tokens, in / width * T::rows};
}

// A tile's sums go through shared memory, [token][row], so that a warp stores whole lines. All copies have ended.
template <class T, class Outputs>
GPU_FN void store_halves(const HalvesProduct& p, const HalvesPlace& place,
                         const float (&sums)[T::token_tiles][T::row_tiles][4], gpu::Shared<float> exchange,
                         const Outputs& outputs) {
  const int first_token = gpu::warp() % T::token_warps * T::warp_tokens + gpu::lane() / 4;
  const int first_row = gpu::warp() / T::token_warps * T::warp_rows + gpu::lane() % 4 * 2;
  gpu::sync();  // all have read their operands
  GPU_UNROLL
  for (int m = 0; m < T::token_tiles; ++m) GPU_UNROLL
  for (int n = 0; n < T::row_tiles; ++n) GPU_UNROLL
  for (int i = 0; i < 4; ++i)
    exchange[(first_token + 16 * m + i / 2 * 8) * T::exchange_stride + first_row + 8 * n + i % 2] = sums[m][n][i];
  gpu::sync();

  constexpr int across = T::rows / 4, down = T::threads / across, at_once = 4;  // loads of a residual on their way
  static_assert(T::threads % across == 0 && T::tokens % (down * at_once) == 0);
  const int row = gpu::thread() % across * 4, count = p.w.rows - place.row - row;
  if (count <= 0) return;
  Four undo = {{1, 1, 1, 1}};
  if (p.w_undo) {
    GPU_UNROLL
    for (int i = 0; i < 4; ++i)
      if (i < count) undo.x[i] = p.w_undo[place.row + row + i];
  }
  for (int first = gpu::thread() / across; first < T::tokens; first += down * at_once) {
    Four fours[at_once];
    GPU_UNROLL
    for (int j = 0; j < at_once; ++j) {
      const int token = place.token + first + j * down;
      if (token >= p.x.rows) continue;
      fours[j] = four_of(gpu::load16(exchange + ((first + j * down) * T::exchange_stride + row)));
      const float power = p.x_undo[token];
      GPU_UNROLL
      for (int i = 0; i < 4; ++i) fours[j].x[i] *= power * undo.x[i];
      fours[j] = outputs.added_to(p.first_row + place.row + row, token, fours[j], count);
    }
    GPU_UNROLL
    for (int j = 0; j < at_once; ++j) {
      const int token = place.token + first + j * down;
      if (token < p.x.rows) outputs.store_four(p.first_row + place.row + row, token, fours[j], count);
    }
  }
}

template <class T, class Outputs>
GPU_KERNEL void multiply_halves(HalvesProduct p, Outputs outputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  const HalvesPlace place = halves_place<T>(p);
  const HalvesSource<T::tokens, T::threads> x(p.x, place.token);
  const HalvesSource<T::rows, T::threads> w(p.w, place.row);
  const int steps = (p.x.columns + step_columns - 1) / step_columns;
  const auto request = [&](int step, int to, int part) {
    if (step < steps) {
      const auto stage = shared + to * T::stage_bytes;
      x.request(step, stage, part), w.request(step, stage + T::tokens * step_bytes, 2 - part);
    }
    if (part == 2) end_batch();
  };

  const int lane = gpu::lane();
  const int x_at = halves_at(gpu::warp() % T::token_warps * T::warp_tokens + lane % 16, lane / 16);
  const int w_at =
      halves_at(T::tokens + gpu::warp() / T::token_warps * T::warp_rows + lane % 8 + lane / 16 * 8, lane / 8 % 2);
  float sums[T::token_tiles][T::row_tiles][4] = {};
  HalvesOperands<T> operands[2];

  gpu::wait_for_inputs();
  for (int s = 0; s + 1 < T::stages; ++s) GPU_UNROLL
  for (int part = 0; part < 3; ++part) request(s, s, part);
  wait_for_batches<T::stages - 2>();
  gpu::sync();
  if (steps > 0) operands[0].load(shared, x_at, w_at, 0);
  int stage = 0;
  for (int step = 0; step < steps; ++step) {
    const auto now = shared + stage * T::stage_bytes;
    const int before = stage == 0 ? T::stages - 1 : stage - 1;  // free since the last sync
    stage = stage + 1 < T::stages ? stage + 1 : 0;
    GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i < 3) {
        operands[(i + 1) % 2].load(now, x_at, w_at, i + 1);
      } else if (step + 1 < steps) {
        wait_for_batches<T::stages - 2>();
        gpu::sync();  // the next step is there, and all have read this one
        operands[0].load(shared + stage * T::stage_bytes, x_at, w_at, 0);
      }
      // Reads of shared memory wait for the copies before them to be asked for, so these are spread.
      if (i < 3) request(step + T::stages - 1, before, i);
      operands[i % 2].multiply_into(sums);
    }
  }
  store_halves<T>(p, place, sums, gpu::cast<float>(shared), outputs);
}

template <class T, class Outputs>
void launch_tiles(HalvesProduct p, const Outputs& outputs, Accelerator& device) {
  p.token_tiles = static_cast<int>(ceil_div(p.x.rows, T::tokens));
  p.row_tiles = static_cast<int>(ceil_div(p.w.rows, T::rows));
  gpu::launch_early<multiply_halves<T, Outputs>, T::threads>(device, {int64_t{p.token_tiles} * p.row_tiles},
                                                             T::shared_bytes, p, outputs);
}

}  // namespace consonant::GPU_BUILD::mma
