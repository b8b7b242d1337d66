// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "ops/top_k/top_k.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

Refusal can_run(const Node& node) { return wants_rows_of(node, {DType::f32}, {DType::f32, DType::i32}); }

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &values = args.out[0], &columns = args.out[1];
  std::vector<int32_t> order(static_cast<size_t>(x.last()));
  for (int64_t r = 0; r < values.rows(); ++r) {
    const float* from = x.row<float>(r);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      if (std::isnan(from[a]) || std::isnan(from[b])) return !std::isnan(from[a]) && std::isnan(from[b]);
      return from[a] > from[b];
    });
    for (int64_t i = 0; i < values.last(); ++i) {
      columns.row<int32_t>(r)[i] = order[static_cast<size_t>(i)];
      values.row<float>(r)[i] = from[order[static_cast<size_t>(i)]];
    }
  }
}

}  // namespace

extern const Kernel top_k_ref = {DeviceKind::reference, Op::top_k, can_run, whole, run};

}  // namespace consonant
