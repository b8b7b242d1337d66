// SPDX-License-Identifier: Apache-2.0
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const bool vector = b.shape.rank() == 1;
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t i = 0; i < y.last(); ++i) {
      const double left = a.row<float>(r)[i], right = (vector ? b.as<float>() : b.row<float>(r))[i];
      y.row<float>(r)[i] = static_cast<float>(left * right);
    }
}

}  // namespace

extern const Kernel mul_ref = {DeviceKind::reference, Op::mul, wants_float_rows, whole, run};

}  // namespace consonant
