// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/argsort/argsort.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

Refusal can_run(const Node& node) { return wants_rows_of(node, {DType::f32}, {DType::i32}); }

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const bool descending = args.attr<ArgsortAttr>().order == Order::descending;
  for (int64_t r = 0; r < y.rows(); ++r) {
    const float* from = x.row<float>(r);
    int32_t* to = y.row<int32_t>(r);
    std::iota(to, to + y.last(), 0);
    std::stable_sort(to, to + y.last(), [&](int32_t a, int32_t b) {
      if (std::isnan(from[a]) || std::isnan(from[b])) return !std::isnan(from[a]) && std::isnan(from[b]);
      return descending ? from[a] > from[b] : from[a] < from[b];
    });
  }
}

}  // namespace

extern const Kernel argsort_ref = {DeviceKind::reference, Op::argsort, can_run, whole, run};

}  // namespace consonant
