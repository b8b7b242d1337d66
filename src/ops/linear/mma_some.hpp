// SPDX-License-Identifier: Apache-2.0
#pragma once

// A linear node for some tokens: more than few, but too few to decode the weights for. A first launch makes the tokens'
// records once; then a block makes a tile of rows by tokens, and walks along the columns by slices of 64, which copies
// bring to shared memory some slices ahead. Weights stay packed there: a warp unpacks an operand in registers and
// multiplies it with all of its tokens. Sums are those of mma_unit.hpp and mma_few.hpp, bit by bit: the same products
// in the same order.
#include "ops/linear/mma_unit.hpp"

namespace consonant::GPU_BUILD::mma {

constexpr int slice_blocks = 2, slice_bytes = slice_blocks * 64;  // of a record's part
constexpr int unit_slices = unit_blocks / slice_blocks;

// How a block's warps share its tile: `down` x `across` warps of 16 `down_each` rows x 8 `across_each` tokens; `split`
// such teams, each with a shared memory of its own, take the units in turns.
template <int Down, int DownEach, int Across, int AcrossEach, int Split = 1>
struct Tiling {
  static constexpr int down = Down, down_each = DownEach, across = Across, across_each = AcrossEach, split = Split;
  static constexpr int rows = 16 * Down * DownEach, tokens = 8 * Across * AcrossEach;
  static constexpr int threads = 32 * Down * Across, groups = rows / 8;  // threads of a team

  GPU_FN static int thread() { return gpu::thread() % threads; }
  GPU_FN static int team() { return gpu::thread() / threads; }
  GPU_FN static int my_down() { return gpu::warp() % (Down * Across) % Down; }
  GPU_FN static int my_across() { return gpu::warp() % (Down * Across) / Down; }
};

// A team's shared memory, in bytes: stages of slices, then two sets of what belongs to a unit.
template <DType Type, class T>
struct SomeMemory {
  static constexpr BlockLayout layout = block_layout(Type);
  static constexpr bool blocks = has_blocks(Type);
  static constexpr int stages = 3;
  static constexpr int base_bytes = blocks ? slice_blocks * static_cast<int>(layout.base_bytes()) : 0;  // of a group
  static constexpr int upper_bytes = blocks ? slice_blocks * static_cast<int>(layout.upper_bytes()) : 0;
  static constexpr int record = blocks ? static_cast<int>(layout.record_bytes()) : 0;
  static constexpr int each_bytes = layout.super() ? 0 : slice_blocks * record;  // blocks' scales
  static constexpr int upper_at = T::groups * base_bytes;
  static constexpr int each_at = upper_at + T::groups * upper_bytes;
  static constexpr int weight_bytes = blocks ? each_at + T::groups * each_bytes : T::rows * slice_bytes;
  static constexpr int stage_bytes = weight_bytes + T::tokens * slice_bytes * parts<Type>;
  // Minima of blocks are wanted when the unit ends, so the records of all its blocks stay.
  static constexpr bool keep_records = layout.super() || layout.minimum();
  static constexpr int group_record = layout.super() ? record : unit_blocks * record;
  static constexpr int sums_at = keep_records ? T::groups * group_record : 0;
  static constexpr int undo_at = sums_at + (layout.minimum() ? T::tokens * 64 : 0);
  static constexpr int unit_bytes = undo_at + T::tokens * 4;
  static constexpr int units_at = stages * stage_bytes;
  static constexpr int end = units_at + 2 * unit_bytes;
};

// The tokens' records: [token][unit], and the powers that undo their scaling: [unit][token].
struct Records {
  gpu::Ptr<uint8_t> data;
  gpu::Ptr<float> undo;
  int tokens, units;
};

constexpr int record_warps = 8;

template <DType Type, class Inputs>
GPU_KERNEL void make_records(Inputs inputs, Records to) {
  gpu::wait_for_inputs();
  const int64_t i = gpu::block() * record_warps + gpu::warp();
  if (i >= int64_t{to.tokens} * to.units) return;  // a whole warp
  const int token = static_cast<int>(i / to.units), unit = static_cast<int>(i % to.units);
  const Four x[2] = {inputs.load(token, lane_column<Type>(unit, 0)), inputs.load(token, lane_column<Type>(unit, 1))};
  const float undo = make_record<Type>(x, to.data + i * record_bytes<Type>);
  if (gpu::lane() == 0) to.undo[int64_t{unit} * to.tokens + token] = undo;
}

// Where sixteen bytes of a row lie in a slice of 128 bytes: odd rows have their halves exchanged, so that eight lanes
// that read two rows meet no bank twice.
GPU_FN int swizzled(int row, int bytes) { return row * slice_bytes + (bytes ^ (row & 1) * 64); }

// Copies of `count` chunks of 16 bytes, spread over a team's threads.
template <class T, class F>
GPU_FN void spread(int count, const F& copy) {
  GPU_UNROLL
  for (int i = T::thread(); i < count; i += T::threads) copy(i);
}

template <DType Type, class T>
struct SomeTile {
  using Memory = SomeMemory<Type, T>;

  const Matrix<Type>& w;
  const Records& x;
  gpu::Shared<uint8_t> shared;
  int first_row, first_token;

  // Slices are counted over the team's units, of which it takes every `split`-th.
  GPU_FN int unit_of(int slice) const { return slice / unit_slices * T::split + T::team(); }
  GPU_FN int first_block(int slice) const { return unit_of(slice) * unit_blocks + slice % unit_slices * slice_blocks; }
  GPU_FN int blocks() const { return (w.columns + 31) / 32; }
  GPU_FN bool has(int slice) const { return first_block(slice) < blocks(); }
  GPU_FN gpu::Shared<uint8_t> stage(int i) const { return shared + i * Memory::stage_bytes; }
  // What belongs to the unit of a slice.
  GPU_FN gpu::Shared<uint8_t> unit(int slice) const {
    return shared + Memory::units_at + slice / unit_slices % 2 * Memory::unit_bytes;
  }

  // A plane of the groups: `each` bytes a group in shared memory, of which the first `bytes` are copied from `at` of
  // the group.
  GPU_FN void copy_groups(gpu::Shared<uint8_t> to, int each, int64_t at, int bytes) const {
    const int chunks = each / 16;
    spread<T>(T::groups * chunks, [&](int i) {
      const int in = i % chunks * 16;
      int group = first_row / 8 + i / chunks;
      if (group >= w.groups()) group = w.groups() - 1;
      if (in < bytes) copy16(to + 16 * i, w.data + group * w.stride + at + in);
    });
  }

  GPU_FN void request_weights(int slice, int to) const {
    constexpr BlockLayout layout = block_layout(Type);
    const auto at = stage(to);
    const int64_t first = first_block(slice);
    if constexpr (Memory::blocks) {
      const int64_t all = w.columns / 32;
      const int here = all - first < slice_blocks ? static_cast<int>(all - first) : slice_blocks;
      copy_groups(at, Memory::base_bytes, first * layout.base_bytes(), here * static_cast<int>(layout.base_bytes()));
      if constexpr (layout.upper_bits != 0)
        copy_groups(at + Memory::upper_at, Memory::upper_bytes, layout.upper_at(all) + first * layout.upper_bytes(),
                    here * static_cast<int>(layout.upper_bytes()));
      if constexpr (!layout.super())
        copy_groups(at + Memory::each_at, Memory::each_bytes, layout.scales_at(all) + first * Memory::record,
                    here * Memory::record);
      if constexpr (Memory::keep_records)
        if (slice % unit_slices == 0) {
          const int u = unit_of(slice);
          copy_groups(unit(slice), Memory::group_record,
                      layout.scales_at(all) + layout.records(int64_t{u} * unit_blocks) * Memory::record,
                      (layout.super() ? 1 : w.blocks_of(u)) * Memory::record);
        }
    } else {
      spread<T>(T::rows * 8, [&](int i) {
        const int row = first_row + i / 8 < w.rows ? first_row + i / 8 : w.rows - 1;
        const int64_t column = first * 32 + i % 8 * 8;
        const bool valid = column < w.columns;
        copy16(at + swizzled(i / 8, i % 8 * 16), w.data + row * w.stride + (valid ? 2 * column : 0), valid);
      });
    }
  }

  GPU_FN gpu::Ptr<const uint8_t> record(int token, int u) const {
    if (token >= x.tokens) token = x.tokens - 1;
    return x.data + (int64_t{token} * x.units + u) * record_bytes<Type>;
  }

  GPU_FN void request_inputs(int slice, int to) const {
    const int u = unit_of(slice), at = slice % unit_slices * slice_bytes;
    GPU_UNROLL
    for (int part = 0; part < parts<Type>; ++part) {
      const auto tokens = stage(to) + Memory::weight_bytes + part * T::tokens * slice_bytes;
      spread<T>(T::tokens * 8, [&](int i) {
        copy16(tokens + swizzled(i / 8, i % 8 * 16),
               record(first_token + i / 8, u) + part * part_bytes + at + i % 8 * 16);
      });
    }
    if (slice % unit_slices != 0) return;
    if constexpr (block_layout(Type).minimum())
      spread<T>(T::tokens * 4, [&](int i) {
        copy16(unit(slice) + Memory::sums_at + 16 * i, record(first_token + i / 4, u) + part_bytes + i % 4 * 16);
      });
    const auto undo = gpu::cast<float>(unit(slice) + Memory::undo_at);
    for (int i = T::thread(); i < T::tokens; i += T::threads) {
      const int token = first_token + i < x.tokens ? first_token + i : x.tokens - 1;
      copy4(undo + i, x.undo + (int64_t{u} * x.tokens + token));
    }
  }
};

// What a lane holds of a warp's sums over a unit.
template <DType Type, class T>
using SomeSums = UnitSums<Type>[T::down_each][T::across_each];

// Adds the products of a slice's block b of whole numbers.
template <DType Type, class T>
GPU_FN void multiply_block(const SomeTile<Type, T>& tile, gpu::Shared<const uint8_t> stage, int slice, int b,
                           SomeSums<Type, T>& sums) {
  using Memory = SomeMemory<Type, T>;
  constexpr BlockLayout layout = block_layout(Type);
  const int g = gpu::lane() / 4, t = gpu::lane() % 4, in_unit = slice % unit_slices * slice_blocks + b;
  BlockOperands<Type> w[T::down_each];
  GPU_UNROLL
  for (int m = 0; m < T::down_each; ++m) GPU_UNROLL
  for (int i = 0; i < 2; ++i) {
    const int group = 2 * (T::my_down() * T::down_each + m) + i;
    const auto base = stage + group * Memory::base_bytes + b * static_cast<int>(layout.base_bytes());
    const auto upper =
        stage + Memory::upper_at + group * Memory::upper_bytes + b * static_cast<int>(layout.upper_bytes());
    const auto records = layout.super() ? tile.unit(slice) + group * Memory::group_record
                                        : stage + Memory::each_at + group * Memory::each_bytes + b * Memory::record;
    w[m].load(i, base, upper, records, in_unit);
  }
  GPU_UNROLL
  for (int n = 0; n < T::across_each; ++n) {
    const int first = 8 * (T::my_across() * T::across_each + n);
    GPU_UNROLL
    for (int j = 0; j < 2; ++j) {
      const auto at = gpu::cast<const uint32_t>(stage + Memory::weight_bytes +
                                                swizzled(first + 4 * j + g / 2, g % 2 * 64 + 16 * t + 8 * b));
      int32_t sum = 0;
      if constexpr (layout.minimum() && !layout.super())
        sum = gpu::cast<const int32_t>(tile.unit(slice) + Memory::sums_at + (first + 4 * j + t) * 64)[in_unit];
      GPU_UNROLL
      for (int m = 0; m < T::down_each; ++m) add_block<Type>(w[m], at[0], at[1], sum, j, sums[m][n]);
    }
  }
}

// The same of halves and bfloats.
template <DType Type, class T>
GPU_FN void multiply_plain(gpu::Shared<const uint8_t> stage, int b, SomeSums<Type, T>& sums) {
  using Memory = SomeMemory<Type, T>;
  const int g = gpu::lane() / 4, t = gpu::lane() % 4;
  uint32_t first[T::down_each][4], second[T::down_each][4];
  GPU_UNROLL
  for (int m = 0; m < T::down_each; ++m) {
    const int row = 16 * (T::my_down() * T::down_each + m) + g;
    const gpu::U4 up = gpu::load16(stage + swizzled(row, 64 * b + 16 * t));
    const gpu::U4 low = gpu::load16(stage + swizzled(row + 8, 64 * b + 16 * t));
    first[m][0] = up.x, first[m][1] = low.x, first[m][2] = up.y, first[m][3] = low.y;
    second[m][0] = up.z, second[m][1] = low.z, second[m][2] = up.w, second[m][3] = low.w;
  }
  GPU_UNROLL
  for (int n = 0; n < T::across_each; ++n) {
    const int token = 8 * (T::my_across() * T::across_each + n) + g;
    const auto at = stage + Memory::weight_bytes + swizzled(token, 64 * b + 16 * t);
    GPU_UNROLL
    for (int part = 0; part < parts<Type>; ++part) {
      const gpu::U4 x = gpu::load16(at + part * T::tokens * slice_bytes);
      GPU_UNROLL
      for (int m = 0; m < T::down_each; ++m) {
        multiply<Type == DType::bf16>(sums[m][n].sums, first[m], x.x, x.y);
        multiply<Type == DType::bf16>(sums[m][n].sums, second[m], x.z, x.w);
      }
    }
  }
}

// Where a lane's sums belong in a tile: fn(row, token, m, n, i).
template <DType Type, class T, class F>
GPU_FN void for_sums(const F& fn) {
  GPU_UNROLL
  for (int n = 0; n < T::across_each; ++n) GPU_UNROLL
  for (int m = 0; m < T::down_each; ++m) GPU_UNROLL
  for (int i = 0; i < 4; ++i)
    fn(16 * (T::my_down() * T::down_each + m) + gpu::lane() / 4 + i / 2 * 8,
       8 * (T::my_across() * T::across_each + n) + lane_token<Type>(i), m, n, i);
}

// With the scales and minima of the unit of `slice`.
template <DType Type, class T>
GPU_FN void finish_units(const SomeTile<Type, T>& tile, int slice, const SomeSums<Type, T>& sums,
                         float (&products)[T::down_each][T::across_each][4]) {
  using Memory = SomeMemory<Type, T>;
  const auto at = tile.unit(slice);
  GPU_UNROLL
  for (int m = 0; m < T::down_each; ++m) {
    const auto records = at + 2 * (T::my_down() * T::down_each + m) * Memory::group_record;
    GPU_UNROLL
    for (int n = 0; n < T::across_each; ++n) {
      const auto first = at + (Memory::sums_at + (8 * (T::my_across() * T::across_each + n) + gpu::lane() % 4) * 64);
      const gpu::Shared<const uint8_t> inputs[2] = {first, first + 4 * 64};
      finish_unit<Type>(sums[m][n], records, records + Memory::group_record, inputs, true, products[m][n]);
    }
  }
}

// Asks for the first slices, weights before the kernel waits for its inputs.
template <DType Type, class T>
GPU_FN void begin_slices(const SomeTile<Type, T>& tile) {
  constexpr int stages = SomeMemory<Type, T>::stages;
  for (int s = 0; s + 1 < stages; ++s)
    if (tile.has(s)) tile.request_weights(s, s);
  gpu::wait_for_inputs();
  for (int s = 0; s + 1 < stages; ++s) {
    if (tile.has(s)) tile.request_inputs(s, s);
    end_batch();
  }
}

// Asks for a slice some stages ahead, works on this one, and returns the next one's stage.
template <DType Type, class T>
GPU_FN int do_slice(const SomeTile<Type, T>& tile, int slice, int stage, SomeSums<Type, T>& sums) {
  constexpr int stages = SomeMemory<Type, T>::stages;
  wait_for_batches<stages - 2>();
  gpu::sync();  // the slice is there, and the stage of the one before it is free
  const int ahead = slice + stages - 1;
  if (tile.has(ahead)) {
    const int to = stage == 0 ? stages - 1 : stage - 1;
    tile.request_weights(ahead, to);
    tile.request_inputs(ahead, to);
  }
  end_batch();
  GPU_UNROLL
  for (int b = 0; b < slice_blocks; ++b)
    if (tile.first_block(slice) + b < tile.blocks()) {
      if constexpr (has_blocks(Type))
        multiply_block<Type, T>(tile, tile.stage(stage), slice, b, sums);
      else
        multiply_plain<Type, T>(tile.stage(stage), b, sums);
    }
  static_assert(slice_blocks == 2);
  GPU_UNROLL
  for (int m = 0; m < T::down_each; ++m) GPU_UNROLL
  for (int n = 0; n < T::across_each; ++n) sums[m][n].end_pair();
  return stage + 1 < stages ? stage + 1 : 0;
}

// Still bound by reading weights: a small tile, whose units are spread over teams so that more is underway. When each
// has done a unit, the block adds theirs in order.
template <class T>
constexpr int exchange_stride = T::rows + 4;  // so that a warp's sums meet no bank twice
template <DType Type, class T>
constexpr int split_memory = T::split*(SomeMemory<Type, T>::end + T::tokens * exchange_stride<T> * 4);

// A block's tile, the rows from `first_row` on by the tokens from `first_token` on.
template <DType Type, class T, class Outputs>
GPU_FN void multiply_some(const Matrix<Type>& w, const Records& x, int first_row, int first_token,
                          const Outputs& outputs, gpu::Shared<uint8_t> shared) {
  using Memory = SomeMemory<Type, T>;
  constexpr int threads = T::threads * T::split, each = T::rows * T::tokens / threads;
  static_assert(each * threads == T::rows * T::tokens);
  const SomeTile<Type, T> tile = {w, x, shared + T::team() * Memory::end, first_row, first_token};
  const auto exchange = gpu::cast<float>(shared + T::split * Memory::end);
  begin_slices(tile);
  float totals[each] = {};
  int stage = 0;
  const int slices = (x.units + T::split - 1) / T::split * unit_slices;  // of the first team
  for (int slice = 0; slice < slices;) {
    const int first = slice;
    SomeSums<Type, T> sums = {};
    for (; slice < first + unit_slices; ++slice) stage = do_slice(tile, slice, stage, sums);
    if (tile.has(first)) {
      float products[T::down_each][T::across_each][4];
      finish_units<Type, T>(tile, first, sums, products);
      for_sums<Type, T>([&](int row, int token, int m, int n, int i) {
        exchange[(T::team() * T::tokens + token) * exchange_stride<T> + row] = products[m][n][i];
      });
    }
    gpu::sync();
    const int units = first / unit_slices * T::split;
    GPU_UNROLL
    for (int k = 0; k < T::split; ++k) {
      if (units + k >= x.units) break;
      const auto undo = gpu::cast<const float>(tile.unit(first) + (k - T::team()) * Memory::end + Memory::undo_at);
      GPU_UNROLL
      for (int i = 0; i < each; ++i) {
        const int at = gpu::thread() + i * threads, token = at / T::rows;
        totals[i] =
            gpu::fma(exchange[(k * T::tokens + token) * exchange_stride<T> + at % T::rows], undo[token], totals[i]);
      }
    }
  }
  GPU_UNROLL
  for (int i = 0; i < each; ++i) {
    const int at = gpu::thread() + i * threads;
    const int row = tile.first_row + at % T::rows, token = tile.first_token + at / T::rows;
    if (row < w.rows && token < x.tokens) outputs.store(row, token, totals[i]);
  }
}

template <DType Type, class T, class Outputs>
GPU_KERNEL void some_tokens(Matrix<Type> w, Records x, int token_tiles, Outputs outputs) {
  GPU_DYNAMIC_SHARED(uint8_t, shared);
  multiply_some<Type, T>(w, x, static_cast<int>(gpu::block() / token_tiles) * T::rows,
                         static_cast<int>(gpu::block() % token_tiles) * T::tokens, outputs, shared);
}

}  // namespace consonant::GPU_BUILD::mma
