// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/checked.hpp"
#include "graph/inputs.hpp"

namespace consonant {

// Keys of a page that a row sees: [first, last).
struct PageRange {
  int64_t first, last;
  bool empty() const { return first >= last; }
};

// A query row on its way through the pages.
struct AttendRow {
  int64_t first = 0, last = 0;  // positions it sees: [first, last)
  float greatest = -std::numeric_limits<float>::infinity();
  float sum = 0;
};

// Runs of neighbouring tokens of one sequence, up to `tile_tokens` long: as many as share a page's decoding well.
struct AttendRuns {
  static constexpr int64_t tile_rows = 192;  // of a tile, about

  const int32_t* seq;
  int64_t tokens, tile_tokens;

  int64_t end(int64_t first) const {
    int64_t t = first + 1;
    while (t < tokens && t - first < tile_tokens && seq[t] == seq[first]) ++t;
    return t;
  }
  int64_t count() const {
    int64_t n = 0;
    for (int64_t t = 0; t < tokens; t = end(t)) ++n;
    return n;
  }
  int64_t start(int64_t run) const {
    int64_t t = 0;
    for (; run > 0; --run) t = end(t);
    return t;
  }
};

// Query rows (tokens x heads) that share a KV head and walk its pages together, and their scratch memory.
struct AttendTile {
  static constexpr int64_t rows_together = 6;  // as many as share a key's load and fit the registers

  int64_t rows, dim, value_dim;
  float scale;
  AttendRow* row;        // [rows]
  const float** q;       // [rows]
  float* sums;           // [rows, value_dim], weighted by exp(score - row.greatest)
  float* scores;         // [rows_together, kv_page]
  float *keys, *values;  // a decoded page: [dim, kv_page], [kv_page, value_dim]

  AttendTile(int64_t rows, int64_t dim, int64_t value_dim, float scale, std::byte* scratch)
      : rows(rows), dim(dim), value_dim(value_dim), scale(scale) {
    const auto take = [&scratch](int64_t bytes) {
      std::byte* p = scratch;
      scratch += round_up(bytes, 64);
      return p;
    };
    row = reinterpret_cast<AttendRow*>(take(rows * int64_t{sizeof(AttendRow)}));
    q = reinterpret_cast<const float**>(take(rows * int64_t{sizeof(float*)}));
    sums = reinterpret_cast<float*>(take(rows * value_dim * 4));
    scores = reinterpret_cast<float*>(take(rows_together * kv_page * 4));
    keys = reinterpret_cast<float*>(take(dim * kv_page * 4));
    values = reinterpret_cast<float*>(take(value_dim * kv_page * 4));
    for (int64_t r = 0; r < rows; ++r) row[r] = AttendRow{};
    for (int64_t i = 0; i < rows * value_dim; ++i) sums[i] = 0;
  }

  static int64_t scratch_bytes(int64_t rows, int64_t dim, int64_t value_dim) {
    return round_up(rows * int64_t{sizeof(AttendRow)}, 64) + round_up(rows * int64_t{sizeof(float*)}, 64) +
           round_up(rows * value_dim * 4, 64) + rows_together * kv_page * 4 + round_up(dim * kv_page * 4, 64) +
           round_up(value_dim * kv_page * 4, 64);
  }
};

// The tile's rows meet the page of positions start ... start + kv_page - 1, decoded: keys [dim, kv_page] and values
// [kv_page, value_dim].
void attend_page(AttendTile& tile, const float* keys, const float* values, int64_t start);

}  // namespace consonant
