// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tokens of a row that a block still looks at, in order of id, and what a block does with them. Each warp has a
// part of the list, whose neighbours are read by neighbouring lanes. Sums are of integers and so need no order.
#include "ops/gpu_rows.hpp"

namespace consonant::GPU_BUILD {

constexpr int bin_count = 2048;

// What the threads of a block tell each other.
struct Board {
  gpu::Shared<uint64_t> bins;   // [bin_count]
  gpu::Shared<uint64_t> parts;  // of each warp, [32]
  gpu::Shared<uint64_t> found;  // [2]
};

struct TokenList {
  gpu::Ptr<const float> values;  // logits by token
  gpu::Ptr<const int32_t> tokens;
  int64_t count = 0;
  bool all = true;  // tokens are 0 ... count - 1
};

GPU_FN uint64_t shfl64(uint64_t x, int lane) {
  const uint32_t low = gpu::shfl(static_cast<uint32_t>(x), lane),
                 high = gpu::shfl(static_cast<uint32_t>(x >> 32), lane);
  return uint64_t{high} << 32 | low;
}
GPU_FN uint64_t warp_total(uint64_t x) {
  for (int mask = gpu::lane_width / 2; mask > 0; mask /= 2) x += shfl64(x, gpu::lane() ^ mask);
  return x;
}
// The sum of this lane's and all lower ones'.
GPU_FN uint64_t warp_prefix(uint64_t x) {
  for (int step = 1; step < gpu::lane_width; step *= 2) {
    const uint64_t other = shfl64(x, gpu::lane() >= step ? gpu::lane() - step : gpu::lane());
    if (gpu::lane() >= step) x += other;
  }
  return x;
}

// Leaves the warps' sums on the board; returns that of the warps before this one.
GPU_FN uint64_t post_parts(const Board& board, uint64_t x) {
  x = warp_total(x);
  gpu::sync();  // what was on the board has been read
  if (gpu::lane() == 0) board.parts[gpu::warp()] = x;
  gpu::sync();
  uint64_t before = 0;
  for (int w = 0; w < gpu::warp(); ++w) before += board.parts[w];
  return before;
}
GPU_FN uint64_t block_total(const Board& board, uint64_t x) {
  post_parts(board, x);
  uint64_t sum = 0;
  for (int w = 0; w < gpu::warps(); ++w) sum += board.parts[w];
  return sum;
}

// Calls fn(position, token, logit) for this warp's part of the list, in order. All lanes call it equally often, with
// token -1 and minus infinity where there is none left.
template <class F>
GPU_FN void for_tokens(const TokenList& list, const F& fn) {
  constexpr int at_once = 8;  // so that as many loads are under way
  const int64_t step = at_once * gpu::lane_width,
                per_warp = (list.count + gpu::warps() * step - 1) / (gpu::warps() * step) * step;
  const int64_t first = gpu::warp() * per_warp, end = first + per_warp < list.count ? first + per_warp : list.count;
  for (int64_t base = first; base < end; base += step) {
    int32_t tokens[at_once];
    float values[at_once];
    GPU_UNROLL
    for (int j = 0; j < at_once; ++j) {
      const int64_t i = base + j * gpu::lane_width + gpu::lane();
      tokens[j] = i >= end ? -1 : list.all ? static_cast<int32_t>(i) : static_cast<int32_t>(list.tokens[i]);
    }
    GPU_UNROLL
    for (int j = 0; j < at_once; ++j)
      values[j] = tokens[j] < 0 ? -INFINITY : static_cast<float>(list.values[tokens[j]]);
    GPU_UNROLL
    for (int j = 0; j < at_once; ++j) fn(base + j * gpu::lane_width + gpu::lane(), tokens[j], values[j]);
  }
}

// The sum of of(logit) over the list.
template <class Of>
GPU_FN uint64_t total_of(const Board& board, const TokenList& list, const Of& of) {
  uint64_t sum = 0;
  for_tokens(list, [&](int64_t, int32_t token, float value) { sum += token < 0 ? 0 : of(value); });
  return block_total(board, sum);
}

// The greatest of(logit).
template <class Of>
GPU_FN float greatest_of(const TokenList& list, const Of& of) {
  float top = -INFINITY;
  for_tokens(list, [&](int64_t, int32_t token, float value) {
    const float x = token < 0 ? -INFINITY : of(value);
    top = x > top ? x : top;
  });
  return gpu::block_max(top);
}

struct Crossing {
  uint64_t at, before;
};

// The bin at which the bins' sum reaches `target`, and the sum of those before it. The total is at least `target`.
GPU_FN Crossing cross_bins(const Board& board, uint64_t target) {
  const int each = bin_count / gpu::threads(), first = gpu::thread() * each;
  uint64_t own = 0;
  for (int i = 0; i < each; ++i) own += board.bins[first + i];
  const uint64_t prefix = warp_prefix(own);
  uint64_t before = post_parts(board, own) + prefix - own;
  if (before < target && target <= before + own) {
    int i = 0;
    for (; before + board.bins[first + i] < target; ++i) before += board.bins[first + i];
    board.found[0] = static_cast<uint64_t>(first + i);
    board.found[1] = before;
  }
  gpu::sync();
  return {board.found[0], board.found[1]};
}

// Sums mass(logit) of the tokens in each bin that bin(logit) names, which is below 0 for those that don't count, and
// finds the bin at which the target is reached.
template <class Bin, class Mass>
GPU_FN Crossing cross(const Board& board, const TokenList& list, const Bin& bin, const Mass& mass, uint64_t target) {
  gpu::sync();
  for (int i = gpu::thread(); i < bin_count; i += gpu::threads()) board.bins[i] = 0;
  gpu::sync();
  for_tokens(list, [&](int64_t, int32_t token, float value) {
    const int b = token < 0 ? -1 : bin(value);
    const uint64_t m = b < 0 ? 0 : mass(value);
    if (m > 0) gpu::atomic_add(board.bins + b, m);
  });
  gpu::sync();
  return cross_bins(board, target);
}

// The least key at which the mass of the tokens of that and smaller keys reaches `target`, digit by digit, and the mass
// of those of smaller keys.
template <class Key, class Mass>
GPU_FN Crossing cross_key(const Board& board, const TokenList& list, const Key& key, const Mass& mass,
                          uint64_t target) {
  uint64_t known = 0, before = 0;
  int shift = 32;
  for (const int width : {11, 11, 10}) {
    const int higher = shift;
    shift -= width;
    const auto bin = [&](float value) {
      const uint64_t k = key(value);
      return k >> higher == known ? static_cast<int>(k >> shift & ((1u << width) - 1)) : -1;
    };
    const Crossing digit = cross(board, list, bin, mass, target - before);
    known = known << width | digit.at;
    before += digit.before;
  }
  return {known, before};
}

struct Position {
  int64_t at;
  int32_t token;
};

// The first place in the list at which the sum of mass(logit) exceeds `left`; that of all of it does.
template <class Mass>
GPU_FN Position locate(const Board& board, const TokenList& list, const Mass& mass, uint64_t left) {
  uint64_t own = 0;
  for_tokens(list, [&](int64_t, int32_t token, float value) { own += token < 0 ? 0 : mass(value); });
  own = warp_total(own);
  uint64_t before = post_parts(board, gpu::lane() == 0 ? own : 0);
  if (before <= left && left < before + own) {  // one warp
    bool searching = true;
    for_tokens(list, [&](int64_t i, int32_t token, float value) {
      if (!searching) return;
      const uint64_t m = token < 0 ? 0 : mass(value), sum = before + warp_prefix(m);
      if (sum > left && sum - m <= left) {
        board.found[0] = static_cast<uint64_t>(i);
        board.found[1] = static_cast<uint64_t>(token);
      }
      before = shfl64(sum, gpu::lane_width - 1);
      searching = before <= left;
    });
  }
  gpu::sync();
  return {static_cast<int64_t>(board.found[0]), static_cast<int32_t>(board.found[1])};
}

// The tokens for which stays(position, logit), written to `to`, which isn't the list's own memory.
template <class Stays>
GPU_FN TokenList keep(const Board& board, const TokenList& list, gpu::Ptr<int32_t> to, const Stays& stays) {
  uint64_t own = 0;
  for_tokens(list, [&](int64_t i, int32_t token, float value) { own += token >= 0 && stays(i, value); });
  int64_t next = static_cast<int64_t>(post_parts(board, own));
  int64_t count = 0;
  for (int w = 0; w < gpu::warps(); ++w) count += static_cast<int64_t>(board.parts[w]);
  for_tokens(list, [&](int64_t i, int32_t token, float value) {
    const bool kept = token >= 0 && stays(i, value);
    const uint64_t all = gpu::ballot(kept), lower = all & ((uint64_t{1} << gpu::lane()) - 1);
    if (kept) to[next + gpu::popcount(lower)] = token;
    next += gpu::popcount(all);
  });
  gpu::sync();
  return {list.values, to, count, false};
}

}  // namespace consonant::GPU_BUILD
