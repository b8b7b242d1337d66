// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/argsort/argsort.hpp"
#include "ops/order.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 2048;

Refusal can_run(const Node& node) { return wants_rows_of(node, {DType::f32}, {DType::i32}); }

Work work(const Args& args) {
  const View& y = args.out[0];
  return {RowChunks(y, chunk_elements).count(), y.last() * static_cast<int64_t>(sizeof(uint64_t))};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &y = args.out[0];
  const bool descending = args.attr<ArgsortAttr>().order == Order::descending;
  const auto keys = reinterpret_cast<uint64_t*>(scratch);
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    for (int64_t i = 0; i < y.last(); ++i) keys[i] = sort_key(x.row<float>(r)[i], i, descending);
    std::sort(keys, keys + y.last());
    for (int64_t i = 0; i < y.last(); ++i) y.row<int32_t>(r)[i] = index_of(keys[i]);
  }
}

}  // namespace

extern const Kernel argsort_cpu = {DeviceKind::cpu, Op::argsort, can_run, work, run};

}  // namespace consonant
