// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/gather.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &index = args.in[1], &y = args.out[0];
  for (int64_t r = 0; r < y.rows(); ++r) gather_row(x, index.as<int32_t>()[r], y.row<float>(r));
}

}  // namespace

extern const Kernel rows_ref = {DeviceKind::reference, Op::rows, wants_rows, whole, run};

}  // namespace consonant
