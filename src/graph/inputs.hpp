// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "graph/node.hpp"

namespace consonant {

// Keys and values of one attention layer: the whole paged cache, of all sequences. An append replaces both by their
// new value. The cache of a layer with latent attention has no keys: its values are the rows that stand for both.
struct KvState {
  Tensor keys, values;
};

// Who sees what: token t of sequence seq[t] at position pos[t] sees the cached positions p of its sequence with
// p <= pos[t] and, if window > 0, p > pos[t] - window.
struct Mask {
  Tensor pos, seq, pages;
  int64_t window = 0;

  Mask sliding(int64_t positions) const { return {pos, seq, pages, positions}; }
};

// For shape rules: an error unless `mask` is of the tokens of x [token, ...].
void check_mask(std::string_view op, const Mask& mask, const Tensor& x, Location at);

// What a Mamba layer keeps of each sequence, whatever its length: a slot a sequence. A node that reads a state replaces
// it by its new value. What a slot holds counts from a sequence's second position on: before its first, at position 0,
// all is zero.
struct MambaState {
  Tensor conv;  // [slot, kernel - 1, channel] f32, the last inputs of the convolution, the oldest first
  Tensor ssm;   // [slot, head, state, dim] f32
};

// Whose state is where: token t, at position pos[t] of its sequence, goes to slot slots[seq[t]]. Tokens of a sequence
// are neighbours and in the order of their positions.
struct Slots {
  Tensor pos, seq;  // [token] i32
  Tensor slots;     // [sequence] i32
};

// For shape rules: an error unless `slots` is of the tokens of x [token, ...].
void check_slots(std::string_view op, const Slots& slots, const Tensor& x, Location at);

// The numbers of a step (runtime's Batch) as values of a graph.
struct Inputs {
  Tensor tokens;  // [token] i32
  Tensor pos;     // [token] i32, position in its sequence
  Tensor seq;     // [token] i32, row of `pages`
  Tensor pages;   // [sequence, page] i32, numbers of the cache's pages, -1 past the last
  Tensor wanted;  // [wanted] i32, rows whose output is wanted
  Mask mask;
  std::vector<KvState> kv;  // an attention layer each

  Slots slots;
  std::vector<MambaState> mamba;  // a Mamba layer each

  // Of a decoder that looks at an encoder's output: all of a window's positions, seen by every token of its sequences.
  Mask cross;
  std::vector<KvState> cross_kv;
};

// The paged cache. A page holds `kv_page` positions of one layer, for all its heads:
//   keys    [head, dim, kv_page]  so that scores need no sum across lanes
//   values  [head, kv_page, dim]
// Rows of latent attention, which keys and values of all heads are made from, lie as the values of one head.
// As q8_0, a page holds the int8 numbers in that order, then float16 scales, one for 32 neighbours along dim:
//   keys    [head, dim / 32, kv_page]   values [head, kv_page, dim / 32]
inline constexpr int64_t kv_page = 64;

// Bytes of a page of keys or of values; `dim` must be a multiple of 32 for q8_0.
int64_t kv_page_bytes(DType type, int64_t heads, int64_t dim);

}  // namespace consonant
