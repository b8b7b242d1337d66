// SPDX-License-Identifier: Apache-2.0
#include "ops/pad_rows/pad_rows.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const PadRowsAttr& a = args.attr<PadRowsAttr>();
  for (int64_t r = 0; r < y.shape[0]; ++r)
    for (int64_t i = 0; i < y.shape[1]; ++i) {
      const int64_t from = edge_row(a.edge, r - a.before, x.shape[0]);
      y.row<float>(r)[i] = from < 0 ? 0 : x.row<float>(from)[i];
    }
}

}  // namespace

extern const Kernel pad_rows_ref = {DeviceKind::reference, Op::pad_rows, wants_float_rows, whole, run};

}  // namespace consonant
