// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// What lies before the first row of a group and after its last: zeros, its rows mirrored at that row (x[-i] = x[i]), or
// that row again.
enum class Edge : uint8_t { zeros, mirror, repeat };

// The one of `rows` rows that stands at `row`, which may lie outside of them; -1: zeros.
constexpr int64_t edge_row(Edge edge, int64_t row, int64_t rows) {
  if (row >= 0 && row < rows) return row;
  if (edge == Edge::mirror) return row < 0 ? -row : 2 * (rows - 1) - row;
  if (edge == Edge::repeat) return row < 0 ? 0 : rows - 1;
  return -1;
}

// For shape rules: whether that many rows may lie before and after `rows`.
constexpr bool has_edges(Edge edge, int64_t rows, int64_t before, int64_t after) {
  if (before < 0 || after < 0) return false;
  const int64_t most = before > after ? before : after;
  if (edge == Edge::mirror) return most < (rows > 1 ? rows : 1);
  return edge == Edge::zeros || most == 0 || rows > 0;
}

struct PatchesAttr {
  int64_t kernel = 1, stride = 1;
  int64_t before = 0, after = 0;  // rows there
  Edge edge = Edge::zeros;
};

// The patches that a convolution over the rows of each group looks at: x [group, time, n] float32 of a fixed size ->
// [group * frames, kernel * n], frames = (before + time + after - kernel) / stride + 1. Patch f of a group is its rows
// f * stride - before ... one after another, `kernel` of them.
Tensor patches(Tensor x, const PatchesAttr& attr, Location at = Location::current());

}  // namespace consonant
