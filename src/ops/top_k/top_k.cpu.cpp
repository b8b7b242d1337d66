// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/order.hpp"
#include "ops/top_k/top_k.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 2048;

Refusal can_run(const Node& node) { return wants_rows_of(node, {DType::f32}, {DType::f32, DType::i32}); }

Work work(const Args& args) {
  const View& x = args.in[0];
  return {RowChunks(x, chunk_elements).count(), x.last() * static_cast<int64_t>(sizeof(uint64_t))};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &values = args.out[0], &columns = args.out[1];
  const int64_t n = x.last(), k = values.last();
  const auto keys = reinterpret_cast<uint64_t*>(scratch);
  const RowChunks chunks(x, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float* from = x.row<float>(r);
    for (int64_t i = 0; i < n; ++i) keys[i] = sort_key(from[i], i, true);
    std::nth_element(keys, keys + k - 1, keys + n);
    std::sort(keys, keys + k);
    for (int64_t i = 0; i < k; ++i) {
      const int32_t column = index_of(keys[i]);
      columns.row<int32_t>(r)[i] = column;
      values.row<float>(r)[i] = from[column];
    }
  }
}

}  // namespace

extern const Kernel top_k_cpu = {DeviceKind::cpu, Op::top_k, can_run, work, run};

}  // namespace consonant
