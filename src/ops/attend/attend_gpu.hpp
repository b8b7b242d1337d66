// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the accelerators' attention kernels share. Cached positions are cut into splits of a fixed size. Of each a
// partial result is computed: for a row (a token's query head) the greatest score m, the sum l of its weights exp(score
// - m), and the sum o of its values by weight. A row's partials are combined in the order of their splits,
//
//   M' = max(M, m)   L' = exp(M - M') L + exp(m - M') l   O' = exp(M - M') O + exp(m - M') o
//
// and the result is O / L. Whether one block walks through the splits of a row and combines as it goes, or the splits
// are spread over blocks and a second launch combines, is the same arithmetic, so the same bits.
#include <algorithm>
#include <vector>

#include "ops/attend/attend.hpp"
#include "ops/gpu_cache.hpp"

namespace consonant::GPU_BUILD {

constexpr int split_pages = 2, split_positions = split_pages * kv_page;

// Weights of what was combined so far and of the next partial.
struct Merge {
  float peak, before, next;
};
GPU_FN Merge merge(float peak, float partial) {
  const float most = partial > peak ? partial : peak;
  const float before = peak == -HUGE_VALF ? 0.0f : gpu::exp(peak - most);
  return {most, before, partial == -HUGE_VALF ? 0.0f : gpu::exp(partial - most)};
}
GPU_FN float merged(float sum, const Merge& m, float partial) {
  return gpu::fma(sum, m.before, gpu::mul(partial, m.next));
}

// Positions first ... last - 1 are seen.
struct Seen {
  int64_t first = 0, last = 0;

  GPU_FN bool has(int64_t position) const { return position >= first && position < last; }
  GPU_FN int64_t first_split() const { return first / split_positions; }
  GPU_FN int64_t end_split() const { return (last + split_positions - 1) / split_positions; }
};

// What all kernels of an attention take.
struct Attention {
  Rows<const float> q;
  Rows<float> y;
  gpu::Ptr<const int32_t> pos, seq, pages;
  int64_t pages_stride = 0;
  int64_t tokens = 0, most_tokens = 1;         // in all, and of a sequence that share a block
  int64_t heads = 0, kv_heads = 0, group = 1;  // query heads of a KV head
  int64_t window = 0;
  float scale = 1;
  // Of partials: [token, head, split, dim] numbers, then [token, head, split] greatest scores, then as many sums.
  gpu::Ptr<float> partials, peaks, sums;
  int64_t splits = 0;  // at the capacity
  bool known = false;  // pos, seq and pages are inputs of the graph, there before any of its kernels begins

  GPU_FN Seen seen(int64_t token) const {
    const int64_t position = pos[token], first = position - window + 1;
    return {window > 0 && first > 0 ? first : 0, position + 1};
  }
  // The first position of the token's sequence that this step appends.
  GPU_FN int64_t first_of_step(int64_t token) const {
    while (token > 0 && seq[token - 1] == seq[token]) --token;
    return pos[token];
  }
  GPU_FN gpu::Ptr<const int32_t> pages_of(int64_t token) const { return pages + seq[token] * pages_stride; }
};

inline int64_t attention_splits(int64_t pages) { return ceil_div(pages, split_pages); }
inline int64_t partial_bytes(int64_t tokens, int64_t heads, int64_t splits, int64_t dim) {
  return tokens * heads * splits * (dim + 2) * int64_t{sizeof(float)};
}

// Over the four lanes that share a row, all of which have the result.
GPU_FN float row_max(float x) {
  x = fmaxf(x, gpu::shfl_xor(x, 1));
  return fmaxf(x, gpu::shfl_xor(x, 2));
}
GPU_FN float row_sum(float x) {
  x = gpu::add(x, gpu::shfl_xor(x, 1));
  return gpu::add(x, gpu::shfl_xor(x, 2));
}

// Splits of a step's tokens are spread over blocks until tokens alone are enough for the device: of so many tokens in
// all, and of so many in one launch, as its partials have a bounded memory.
struct Splitting {
  int64_t tokens = 0, at_once = 0;

  Splitting(int64_t heads, int64_t kv_heads, int64_t splits, int64_t dim, const Limits& limits) {
    const int64_t most_bytes = (int64_t{1} << 20) * limits.processors;
    // A single split is combined with nothing, but its block has the rows of one token only, and so is done sooner.
    tokens = ceil_div((splits < 2 ? 1 : 4) * limits.processors, kv_heads);
    at_once = std::clamp<int64_t>(most_bytes / std::max<int64_t>(1, partial_bytes(1, heads, splits, dim)), 1, tokens);
  }
};
inline int64_t attention_scratch(const Node& node, const Limits& limits) {
  const Shape &y = node.outputs[0].shape, &values = node.inputs[2].shape();
  const int64_t splits = attention_splits(node.inputs[5].shape()[1]);
  const Splitting splitting(y[1], values[1], splits, y[2], limits);
  return partial_bytes(std::min(y[0], splitting.at_once), y[1], splits, y[2]);
}

// Calls fn(args, whether splits are spread) for the step, or one part of its tokens after the other where the partials
// of all of them wouldn't fit: the first inputs of `by_token`, and pos and seq, have a row a token. Tokens of one
// sequence stay together, since a block that has several of them reads what they see once.
template <class F>
void for_parts(const Args& args, const Splitting& splitting, size_t by_token, const F& fn) {
  constexpr int64_t most_parts = 8;
  const int64_t tokens = args.in[0].shape[0], sequences = args.in[5].shape[0];
  const int64_t parts = splitting.at_once > 0 ? ceil_div(tokens, splitting.at_once) : 1;
  if (parts == 1 || parts > most_parts || tokens > splitting.tokens || tokens > sequences)
    return fn(args, tokens <= splitting.at_once);
  const int64_t together = ceil_div(tokens, parts);
  for (int64_t first = 0; first < tokens; first += together) {
    const auto cut = [&](const View& all) {
      View part = all;
      part.data += first * all.strides[0] * info(all.type).block_bytes;
      part.shape = all.shape.with_lead(std::min(together, tokens - first), all.shape.axis());
      return part;
    };
    std::vector<View> in(args.in.begin(), args.in.end());
    for (size_t i = 0; i < in.size(); ++i)
      if (i < by_token || i == 3 || i == 4) in[i] = cut(in[i]);
    const View out = cut(args.out[0]);
    fn(Args{args.node, in, {&out, 1}}, true);
  }
}

inline Attention attention(const Args& args, std::byte* scratch, bool split) {
  const View &q = args.in[0], &values = args.in[2], &pages = args.in[5];
  const auto& attr = args.attr<AttendAttr>();
  Attention a;
  a.q = rows_of<const float>(q), a.y = rows_of<float>(args.out[0]);
  a.pos = pointer<const int32_t>(args.in[3]), a.seq = pointer<const int32_t>(args.in[4]);
  a.pages = pointer<const int32_t>(pages), a.pages_stride = pages.strides[0];
  // Sequences of a token each, as when many are decoded at once, would only wait for each other in a block.
  a.tokens = q.shape[0], a.most_tokens = ceil_div(a.tokens, std::max<int64_t>(1, pages.shape[0]));
  a.heads = q.shape[1], a.kv_heads = values.shape[1], a.group = a.heads / a.kv_heads;
  a.window = attr.window, a.scale = attr.scale;
  a.known = true;
  for (size_t i = 3; i <= 5; ++i) a.known = a.known && args.node->inputs[i].node->op == op_input;
  a.splits = attention_splits(pages.shape[1]);
  if (split) {
    const int64_t rows = a.tokens * a.heads * a.splits, dim = a.y.cols;
    a.partials = gpu::pointer<float>(scratch, partial_bytes(a.tokens, a.heads, a.splits, dim));
    a.peaks = a.partials + rows * dim, a.sums = a.peaks + rows;
  }
  return a;
}

// Rows of a block: tokens of one sequence by query heads of one KV head.
struct RowSet {
  int64_t token = 0, tokens = 0, head = 0, heads = 0, kv_head = 0;

  GPU_FN int rows() const { return static_cast<int>(tokens * heads); }
  // Divisions of 64 bits would take longer than what a short sequence's attention waits for.
  GPU_FN int64_t token_of(int r) const { return token + static_cast<unsigned>(r) / static_cast<unsigned>(heads); }
  GPU_FN int64_t head_of(int r) const { return head + static_cast<unsigned>(r) % static_cast<unsigned>(heads); }
};

// What at least one of the rows sees lies between these.
GPU_FN Seen seen_by_any(const Attention& a, const RowSet& set) {
  Seen all = a.seen(set.token);
  for (int64_t t = 1; t < set.tokens; ++t) {
    const Seen seen = a.seen(set.token + t);
    all.first = seen.first < all.first ? seen.first : all.first;
    all.last = seen.last > all.last ? seen.last : all.last;
  }
  return all;
}

// How rows are cut into blocks of up to `rows`, which are numbered [split block, token tile, KV head, part of the
// group].
struct Cut {
  int64_t tile_tokens = 1, heads = 1, parts = 1, tiles = 1;
  // Over how many blocks a tile's splits are spread. Since most of a large capacity's splits are empty while a sequence
  // is short, only so many that they fill the device; each takes every n-th split.
  int64_t split_blocks = 1;

  Cut(const Attention& a, int64_t rows, bool split, int64_t enough_blocks) {
    heads = std::min(rows, a.group), parts = ceil_div(a.group, heads);
    if (!split && parts == 1) tile_tokens = std::min(rows / heads, a.most_tokens);
    tiles = ceil_div(a.tokens, tile_tokens);
    if (split) split_blocks = std::clamp<int64_t>(ceil_div(enough_blocks, blocks(a)), 1, a.splits);
  }
  int64_t blocks(const Attention& a) const { return split_blocks * tiles * a.kv_heads * parts; }

  GPU_FN RowSet rows(const Attention& a, int64_t block) const {
    RowSet set;
    // The last tokens see most, so they come first.
    const auto n = static_cast<unsigned>(block), all_parts = static_cast<unsigned>(parts),
               kv_heads = static_cast<unsigned>(a.kv_heads), all_tiles = static_cast<unsigned>(tiles);
    const int64_t part = n % all_parts, tile = tiles - 1 - n / all_parts / kv_heads % all_tiles;
    set.kv_head = n / all_parts % kv_heads;
    set.head = set.kv_head * a.group + part * heads;
    set.heads = a.group - part * heads < heads ? a.group - part * heads : heads;
    set.token = tile * tile_tokens;
    set.tokens = a.tokens - set.token < tile_tokens ? a.tokens - set.token : tile_tokens;
    return set;
  }
  GPU_FN int64_t split_block(const Attention& a, int64_t block) const {
    return static_cast<unsigned>(block) / static_cast<unsigned>(parts) / static_cast<unsigned>(a.kv_heads) /
           static_cast<unsigned>(tiles);
  }
};

// Calls fn for the rows of each sequence of a tile, one after the other.
template <class F>
GPU_FN void for_sequences(const Attention& a, RowSet set, const F& fn) {
  const int64_t end = set.token + set.tokens;
  for (; set.token < end; set.token += set.tokens) {
    set.tokens = 1;
    while (set.token + set.tokens < end && a.seq[set.token + set.tokens] == a.seq[set.token]) ++set.tokens;
    fn(set);
  }
}

constexpr int combine_threads = 64;

// A block a row and `combine_threads` of its dimensions. Of 64 splits at a time the factors are computed side by side
// and partials requested ahead; what's left in order is one addition a split.
GPU_KERNEL void combine_splits(Attention a) {
  constexpr int together = combine_threads, ahead = 8;
  GPU_SHARED(float, peaks, together);
  GPU_SHARED(float, before, together);
  GPU_SHARED(float, next, together);
  GPU_SHARED(float, sums, together);
  if (!a.known) gpu::wait_for_inputs();
  const auto parts = static_cast<unsigned>((a.y.cols + combine_threads - 1) / combine_threads),
             block = static_cast<unsigned>(gpu::block());
  const int64_t row = block / parts, column = block % parts * combine_threads + gpu::thread();
  const bool inside = column < a.y.cols;
  const Seen seen = a.seen(static_cast<unsigned>(row) / static_cast<unsigned>(a.heads));
  const int64_t end = seen.end_split();
  if (a.known) gpu::wait_for_inputs();
  float peak = -HUGE_VALF, sum = 0, total = 0;
  GPU_UNROLL_BY(1)
  for (int64_t first = seen.first_split(); first < end; first += together) {
    const int n = static_cast<int>(end - first < together ? end - first : together), t = gpu::thread();
    const int64_t at = row * a.splits + first;
    float parts_of[ahead];
    const auto request = [&](int from) {
      GPU_UNROLL
      for (int s = 0; s < ahead; ++s)
        if (inside && from + s < n) parts_of[s] = a.partials[(at + from + s) * a.y.cols + column];
    };
    request(0);
    gpu::sync();
    if (t < n) peaks[t] = a.peaks[at + t], sums[t] = a.sums[at + t];
    gpu::sync();
    if (t < n) {
      float most = peak;  // of the splits before t
      GPU_UNROLL_BY(1)
      for (int s = 0; s < t; ++s) most = peaks[s] > most ? static_cast<float>(peaks[s]) : most;
      const Merge m = merge(most, peaks[t]);
      before[t] = m.before, next[t] = m.next;
    }
    gpu::sync();
    GPU_UNROLL_BY(1)
    for (int from = 0; from < n; from += ahead) {
      if (from > 0) request(from);
      GPU_UNROLL
      for (int s = 0; s < ahead; ++s) {
        if (from + s >= n) break;
        const Merge m{0, before[from + s], next[from + s]};
        sum = merged(sum, m, sums[from + s]);
        if (inside) total = merged(total, m, parts_of[s]);
      }
    }
    GPU_UNROLL_BY(1)
    for (int s = 0; s < n; ++s) peak = peaks[s] > peak ? static_cast<float>(peaks[s]) : peak;
  }
  if (inside) a.y.row(row)[column] = total / sum;
}

inline void launch_combine(const Attention& a, Accelerator& device) {
  gpu::launch_early<combine_splits, combine_threads>(device, {a.tokens * a.heads * ceil_div(a.y.cols, combine_threads)},
                                                     0, a);
}

}  // namespace consonant::GPU_BUILD
