// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sorting rows of keys (ops/order.hpp). A block sorts a tile of up to 4096 keys in shared memory with a bitonic network
// (Batcher 1968), several keys a thread. Rows that are longer than that are then merged, two runs into one a launch, so
// that a row of n needs 1 + log2(n / 4096) launches. If only the first k of a row are wanted, each tile keeps k, and
// what is left is cut into tiles again.
//
// A tile costs log2(4096) (log2(4096) + 1) / 2 = 78 steps of shared memory, each with a barrier; a merge reads and
// writes all keys once, 16 bytes a key, and is bound by that.
#include "ops/gpu_rows.hpp"
#include "ops/order.hpp"

namespace consonant {

constexpr int64_t sort_tile = 4096;           // keys, in 32 KiB of shared memory
constexpr int64_t merge_tile = 2048;          // keys that a block of a merge writes; a run is a multiple of it
constexpr int64_t most_kept = sort_tile / 2;  // of a tile, for what is left to shrink

constexpr int64_t tiles_of(int64_t n) { return n == 0 ? 0 : (n + sort_tile - 1) / sort_tile; }

// Keys that are left of a row when each of its tiles keeps k.
constexpr int64_t left_of(int64_t n, int64_t k) {
  const int64_t last = n - (tiles_of(n) - 1) * sort_tile;
  return (tiles_of(n) - 1) * k + (last < k ? last : k);
}

// Keys of scratch memory that a row of n needs if the first k are wanted.
constexpr int64_t sort_scratch_keys(int64_t n, int64_t k) {
  if (n <= sort_tile) return 0;
  return k > most_kept ? 2 * n : left_of(n, k) + left_of(left_of(n, k), k);
}

inline Refusal wants_sortable(const Node& node, const Limits& limits) {
  const Shape& shape = node.inputs[0].shape();
  if (sort_tile * static_cast<int64_t>(sizeof(uint64_t)) > limits.shared_bytes)
    return {fmt::format("a tile of {} keys is more than {} bytes of shared memory", sort_tile, limits.shared_bytes)};
  if (shape.rows() * ceil_div(shape.last(), merge_tile) > limits.grid)
    return {fmt::format("{} has more than {} tiles", to_string(shape), limits.grid)};
  return wants_gpu_shapes(node, limits);
}

namespace GPU_BUILD {

// Where keys come from and where they go; both count rows and positions in them.
struct KeysOfFloats {
  Rows<const float> x;
  bool descending;
  GPU_FN uint64_t operator()(int64_t r, int64_t i) const { return sort_key(gpu::to_bits(x.row(r)[i]), i, descending); }
};
struct StoredKeys {
  gpu::Ptr<const uint64_t> keys;
  int64_t stride;
  GPU_FN uint64_t operator()(int64_t r, int64_t i) const { return keys[r * stride + i]; }
};
struct StoreKeys {
  gpu::Ptr<uint64_t> keys;
  int64_t stride;
  GPU_FN void operator()(int64_t r, int64_t i, uint64_t key) const { keys[r * stride + i] = key; }
};

// Keys in shared memory, `count` of them and a power of two.
GPU_FN void sort_block(gpu::Shared<uint64_t> keys, int count) {
  for (int run = 2; run <= count; run *= 2)
    for (int step = run / 2; step > 0; step /= 2) {
      for (int pair = gpu::thread(); pair < count / 2; pair += gpu::threads()) {
        const int low = 2 * pair - (pair & (step - 1)), high = low + step;
        const uint64_t a = keys[low], b = keys[high];
        if ((a > b) == ((low & run) == 0)) {
          keys[low] = b;
          keys[high] = a;
        }
      }
      gpu::sync();
    }
}

// A block sorts `size` keys (a power of two) of a row of n, and gives away the first `keep`.
template <class From, class To>
GPU_KERNEL void sort_tiles(From from, int64_t n, int size, int64_t keep, To to) {
  GPU_DYNAMIC_SHARED(uint64_t, keys);
  const int64_t tiles = (n + size - 1) / size, row = gpu::block() / tiles, tile = gpu::block() % tiles;
  const int64_t first = tile * size;
  for (int i = gpu::thread(); i < size; i += gpu::threads()) keys[i] = first + i < n ? from(row, first + i) : last_key;
  gpu::sync();
  sort_block(keys, size);
  for (int i = gpu::thread(); i < size && i < keep && first + i < n; i += gpu::threads())
    to(row, tile * keep + i, keys[i]);
}

// Of the first `taken` keys of a and b merged, how many come from a. No two keys are equal.
GPU_FN int64_t split_merge(gpu::Ptr<const uint64_t> a, int64_t a_count, gpu::Ptr<const uint64_t> b, int64_t b_count,
                           int64_t taken) {
  int64_t low = taken > b_count ? taken - b_count : 0, high = taken < a_count ? taken : a_count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a[middle] < b[taken - 1 - middle])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// How many of the sorted keys are smaller.
GPU_FN int rank_among(gpu::Shared<uint64_t> keys, int first, int count, uint64_t key) {
  int low = 0, high = count;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (keys[first + middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Merges runs of `run` keys of each row of n two by two; the first `keep` are given away. A block finds which parts of
// the two runs make its tile (merge path: Green et al. 2012), and each of its keys the place it has there.
template <class To>
GPU_KERNEL void merge_runs(gpu::Ptr<const uint64_t> keys, int64_t n, int64_t run, int64_t keep, To to) {
  GPU_DYNAMIC_SHARED(uint64_t, part);
  GPU_SHARED(int64_t, splits, 2);
  const int64_t tiles = (n + merge_tile - 1) / merge_tile, row = gpu::block() / tiles;
  const int64_t first = gpu::block() % tiles * merge_tile, start = first / (2 * run) * (2 * run);
  const int64_t a_count = n - start < run ? n - start : run;
  const int64_t b_count = n - start - a_count < run ? n - start - a_count : run;
  const int64_t begin = first - start;
  const int64_t end = begin + merge_tile < a_count + b_count ? begin + merge_tile : a_count + b_count;
  const auto a = keys + (row * n + start), b = keys + (row * n + start + a_count);
  if (gpu::thread() < 2) splits[gpu::thread()] = split_merge(a, a_count, b, b_count, gpu::thread() ? end : begin);
  gpu::sync();
  const int64_t a_first = splits[0], b_first = begin - a_first;
  const int a_taken = static_cast<int>(splits[1] - a_first), taken = static_cast<int>(end - begin);
  for (int i = gpu::thread(); i < taken; i += gpu::threads())
    part[i] = i < a_taken ? a[a_first + i] : b[b_first + i - a_taken];
  gpu::sync();
  for (int i = gpu::thread(); i < taken; i += gpu::threads()) {
    const uint64_t key = part[i];
    const bool of_a = i < a_taken;
    const int place =
        of_a ? i + rank_among(part, a_taken, taken - a_taken, key) : i - a_taken + rank_among(part, 0, a_taken, key);
    if (first + place < keep) to(row, first + place, key);
  }
}

template <class From, class To>
void launch_tiles(Accelerator& device, int64_t rows, const From& from, int64_t n, int64_t keep, const To& to) {
  int size = 2;
  while (size < n && size < sort_tile) size *= 2;
  const gpu::Grid grid{rows * ceil_div(n, size)};
  const int64_t shared = size * static_cast<int64_t>(sizeof(uint64_t));
  if (size <= 128)
    gpu::launch<sort_tiles<From, To>, 64>(device, grid, shared, from, n, size, keep, to);
  else if (size <= 1024)
    gpu::launch<sort_tiles<From, To>, 256>(device, grid, shared, from, n, size, keep, to);
  else
    gpu::launch<sort_tiles<From, To>, 1024>(device, grid, shared, from, n, size, keep, to);
}

// The first k of `rows` sorted rows of n > 0 keys.
template <class From, class To>
void launch_sort(Accelerator& device, int64_t rows, const From& from, int64_t n, int64_t k, const To& to,
                 std::byte* scratch) {
  if (n <= sort_tile) return launch_tiles(device, rows, from, n, k, to);
  const bool selects = k <= most_kept;
  int64_t left = selects ? left_of(n, k) : n;
  const auto first = gpu::pointer<uint64_t>(scratch, rows * sort_scratch_keys(n, k) * 8);
  gpu::Ptr<uint64_t> now = first, next = first + rows * left;
  launch_tiles(device, rows, from, n, selects ? k : sort_tile, StoreKeys{now, left});
  const auto swap = [&] {
    const gpu::Ptr<uint64_t> old = now;
    now = next, next = old;
  };
  if (selects) {
    for (; left > sort_tile; swap()) {
      const int64_t after = left_of(left, k);
      launch_tiles(device, rows, StoredKeys{now, left}, left, k, StoreKeys{next, after});
      left = after;
    }
    return launch_tiles(device, rows, StoredKeys{now, left}, left, k, to);
  }
  const gpu::Grid grid{rows * ceil_div(n, merge_tile)};
  const int64_t shared = merge_tile * static_cast<int64_t>(sizeof(uint64_t));
  for (int64_t run = sort_tile; run < n; run *= 2, swap()) {
    const gpu::Ptr<const uint64_t> keys = now;
    if (2 * run < n)
      gpu::launch<merge_runs<StoreKeys>, 256>(device, grid, shared, keys, n, run, n, StoreKeys{next, n});
    else
      gpu::launch<merge_runs<To>, 256>(device, grid, shared, keys, n, run, k, to);
  }
}

}  // namespace GPU_BUILD

}  // namespace consonant
