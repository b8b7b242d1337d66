// SPDX-License-Identifier: Apache-2.0
#include "ops/cumsum/cumsum.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  for (int64_t r = 0; r < y.rows(); ++r) {
    double sum = 0;
    for (int64_t i = 0; i < y.last(); ++i) y.row<float>(r)[i] = static_cast<float>(sum += double{x.row<float>(r)[i]});
  }
}

}  // namespace

extern const Kernel cumsum_ref = {DeviceKind::reference, Op::cumsum, wants_float_rows, whole, run};

}  // namespace consonant
