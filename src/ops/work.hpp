// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/checked.hpp"
#include "ops/kernel.hpp"

namespace consonant {

// Rows of an output cut into chunks of about `elements` elements: for kernels that treat each row by itself.
struct RowChunks {
  int64_t rows, per_chunk;

  RowChunks(const View& out, int64_t elements)
      : rows(out.rows()), per_chunk(std::max<int64_t>(1, elements / std::max<int64_t>(1, out.last()))) {}
  int64_t count() const { return ceil_div(rows, per_chunk); }
  int64_t first(int64_t chunk) const { return chunk * per_chunk; }
  int64_t last(int64_t chunk) const { return std::min(rows, (chunk + 1) * per_chunk); }
};

// One chunk for all of it: what reference kernels use.
inline Work whole(const Args&) { return {1, 0}; }

// Refuses nodes whose inputs and outputs aren't all float32, or whose rows aren't contiguous.
Refusal wants_float_rows(const Node& node);

// The same for these types instead; a node may have fewer inputs or outputs than are listed.
Refusal wants_rows_of(const Node& node, std::initializer_list<DType> inputs, std::initializer_list<DType> outputs);

// Refuses what products and gathers can't read as a matrix [rows, columns]: numbers of other types than float32,
// float16, bfloat16 and the block formats, and parts of a weight, which may lie repacked.
Refusal wants_matrix(const Tensor& w, std::string_view role);

}  // namespace consonant
