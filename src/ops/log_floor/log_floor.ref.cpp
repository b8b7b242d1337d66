// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/log_floor/log_floor.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto a = args.attr<LogFloorAttr>();
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t i = 0; i < y.last(); ++i) {
      const double v = x.row<float>(r)[i];
      y.row<float>(r)[i] = static_cast<float>(std::log(std::max(v, double{a.least})));
    }
}

}  // namespace

extern const Kernel log_floor_ref = {DeviceKind::reference, Op::log_floor, wants_float_rows, whole, run};

}  // namespace consonant
