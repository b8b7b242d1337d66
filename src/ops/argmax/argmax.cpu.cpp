// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/argmax/argmax.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 16384;
constexpr int lanes = 16;

Refusal can_run(const Node& node) { return wants_rows_of(node, {DType::f32}, {DType::i32}); }

Work work(const Args& args) { return {RowChunks(args.in[0], chunk_elements).count(), 0}; }

// The greatest number with vectors, then the first that equals it.
int64_t greatest(const float* row, int64_t n) {
  float top[lanes];
  std::fill_n(top, lanes, -INFINITY);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int j = 0; j < lanes; ++j) top[j] = row[i + j] > top[j] ? row[i + j] : top[j];
  for (; i < n; ++i) top[0] = row[i] > top[0] ? row[i] : top[0];
  const int64_t at = std::find(row, row + n, *std::max_element(top, top + lanes)) - row;
  return at < n ? at : 0;  // all are NaN
}

void run(const Args& args, int64_t chunk, std::byte*) {
  const View& x = args.in[0];
  const RowChunks chunks(x, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    args.out[0].as<int32_t>()[r] = static_cast<int32_t>(greatest(x.row<float>(r), x.last()));
}

}  // namespace

extern const Kernel argmax_cpu = {DeviceKind::cpu, Op::argmax, can_run, work, run};

}  // namespace consonant
