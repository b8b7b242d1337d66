// SPDX-License-Identifier: Apache-2.0
#include "ops/clamp/clamp.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto a = args.attr<ClampAttr>();
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t i = 0; i < y.last(); ++i) {
      const double v = x.row<float>(r)[i];
      y.row<float>(r)[i] = static_cast<float>(v < a.least ? a.least : v > a.most ? a.most : v);
    }
}

}  // namespace

extern const Kernel clamp_ref = {DeviceKind::reference, Op::clamp, wants_float_rows, whole, run};

}  // namespace consonant
