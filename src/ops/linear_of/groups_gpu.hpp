// SPDX-License-Identifier: Apache-2.0
#pragma once

// (token, slot) pairs sorted by the expert that they go to, and the tiles that a grouped product walks: all on the
// device, in one launch whose size follows from numbers that the host knows.
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

constexpr int group_threads = 256;

struct ExpertTile {
  int32_t expert, first, count, unused;  // of the sorted pairs; an empty tile has none
};

// At most so many tiles are needed: every expert's last one may be partly empty.
inline int64_t most_tiles(int64_t pairs, int64_t experts, int64_t side) {
  return ceil_div(pairs, side) + std::min(pairs, experts);
}

struct PairGroups {
  Rows<const int32_t> ids;
  int64_t experts;
  int tile_side;
  gpu::Ptr<int32_t> order;  // [pairs]: those of expert 0 first, each expert's in their own order
  gpu::Ptr<int32_t> tiles;  // [most_tiles] of ExpertTile
  int64_t tile_count;

  GPU_FN int64_t pairs() const { return ids.rows * ids.cols; }
  GPU_FN int expert_of(int64_t pair) const { return ids.row(pair / ids.cols)[pair % ids.cols]; }
  GPU_FN void put_tile(int64_t at, int expert, int64_t first, int64_t count) const {
    const auto to = tiles + 4 * at;
    to[0] = expert, to[1] = static_cast<int32_t>(first), to[2] = static_cast<int32_t>(count), to[3] = 0;
  }
};

// Bytes of the order and the tiles.
inline int64_t order_bytes(int64_t pairs) { return round_up(pairs * 4, 16); }
inline int64_t group_bytes(int64_t pairs, int64_t experts, int64_t side) {
  return order_bytes(pairs) + most_tiles(pairs, experts, side) * static_cast<int64_t>(sizeof(ExpertTile));
}

inline PairGroups groups_of(const View& ids, int64_t experts, int side, std::byte* scratch) {
  const auto rows = rows_of<const int32_t>(ids);
  const int64_t pairs = ids.shape.count(), tiles = most_tiles(pairs, experts, side);
  return {rows,
          experts,
          side,
          gpu::pointer<int32_t>(scratch, pairs * 4),
          gpu::pointer<int32_t>(scratch + order_bytes(pairs), tiles * 16),
          tiles};
}

// A block an expert: it counts everybody's pairs, and so knows where its own begin. Reads the ids twice: a few thousand
// numbers, from a cache.
GPU_KERNEL void group_pairs(PairGroups g) {
  GPU_DYNAMIC_SHARED(uint32_t, counts);
  GPU_SHARED(uint32_t, before, 2);  // pairs and tiles of the experts before this one
  GPU_SHARED(uint32_t, of_warp, group_threads / 32);
  const int mine = static_cast<int>(gpu::block());
  const int64_t pairs = g.pairs();
  for (int64_t e = gpu::thread(); e < g.experts; e += group_threads) counts[e] = 0;
  if (gpu::thread() < 2) before[gpu::thread()] = 0;
  gpu::sync();
  for (int64_t pair = gpu::thread(); pair < pairs; pair += group_threads)
    gpu::atomic_add(counts + g.expert_of(pair), uint32_t{1});
  gpu::sync();
  const auto side = static_cast<uint32_t>(g.tile_side);
  for (int e = gpu::thread(); e < mine; e += group_threads) {
    const uint32_t count = counts[e];
    if (count == 0) continue;
    gpu::atomic_add(before + 0, count);
    gpu::atomic_add(before + 1, (count + side - 1) / side);
  }
  gpu::sync();
  const uint32_t first = before[0], tile = before[1], count = counts[mine], tiles = (count + side - 1) / side;
  for (uint32_t t = gpu::thread(); t < tiles; t += group_threads)
    g.put_tile(tile + t, mine, first + t * side, count - t * side < side ? count - t * side : side);
  if (mine == g.experts - 1)
    for (int64_t t = tile + tiles + gpu::thread(); t < g.tile_count; t += group_threads) g.put_tile(t, 0, 0, 0);
  if (count == 0) return;

  uint32_t placed = first;
  for (int64_t start = 0; start < pairs; start += group_threads) {
    const int64_t pair = start + gpu::thread();
    const bool is_mine = pair < pairs && g.expert_of(pair) == mine;
    const uint64_t lanes = gpu::ballot(is_mine);
    if (gpu::lane() == 0) of_warp[gpu::warp()] = static_cast<uint32_t>(gpu::popcount(lanes));
    gpu::sync();
    uint32_t at = placed;
    for (int w = 0; w < gpu::warps(); ++w) {
      if (w < gpu::warp()) at += of_warp[w];
      placed += of_warp[w];
    }
    if (is_mine) g.order[at + gpu::popcount(lanes & ((uint64_t{1} << gpu::lane()) - 1))] = static_cast<int32_t>(pair);
    gpu::sync();
  }
}

inline void launch_groups(Accelerator& device, const PairGroups& groups) {
  gpu::launch<group_pairs, group_threads>(device, {groups.experts}, groups.experts * 4, groups);
}

}  // namespace consonant::GPU_BUILD
