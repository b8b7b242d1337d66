// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/rms_norm/rms_norm.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &w = args.in[1], &y = args.out[0];
  for (int64_t r = 0; r < y.rows(); ++r) {
    double sum = 0;
    for (int64_t i = 0; i < y.last(); ++i) sum += double{x.row<float>(r)[i]} * x.row<float>(r)[i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(y.last()) + args.attr<RmsNormAttr>().epsilon);
    for (int64_t i = 0; i < y.last(); ++i)
      y.row<float>(r)[i] = static_cast<float>(x.row<float>(r)[i] * scale * w.as<float>()[i]);
  }
}

}  // namespace

extern const Kernel rms_norm_ref = {DeviceKind::reference, Op::rms_norm, wants_float_rows, whole, run};

}  // namespace consonant
