// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/argmax/argmax.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

Refusal can_run(const Node& node) { return wants_rows_of(node, {DType::f32}, {DType::i32}); }

void run(const Args& args, int64_t, std::byte*) {
  const View& x = args.in[0];
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* row = x.row<float>(r);
    int64_t best = 0;
    for (int64_t i = 1; i < x.last(); ++i)
      if (row[i] > row[best] || (std::isnan(row[best]) && !std::isnan(row[i]))) best = i;
    args.out[0].as<int32_t>()[r] = static_cast<int32_t>(best);
  }
}

}  // namespace

extern const Kernel argmax_ref = {DeviceKind::reference, Op::argmax, can_run, whole, run};

}  // namespace consonant
