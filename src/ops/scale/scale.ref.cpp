// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/scale.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const float factor = args.attr<ScaleAttr>().factor;
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t i = 0; i < y.last(); ++i) y.row<float>(r)[i] = x.row<float>(r)[i] * factor;
}

}  // namespace

extern const Kernel scale_ref = {DeviceKind::reference, Op::scale, wants_float_rows, whole, run};

}  // namespace consonant
