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

}  // namespace consonant
