// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const float *a = args.in[1].as<float>(), *b = args.in[2].as<float>();
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t i = 0; i < y.last(); ++i) {
      const double v = x.row<float>(r)[i], wave = std::sin(std::exp(double{a[i]}) * v);
      y.row<float>(r)[i] = static_cast<float>(v + wave * wave / (std::exp(double{b[i]}) + 1e-9));
    }
}

}  // namespace

extern const Kernel snake_ref = {DeviceKind::reference, Op::snake, wants_float_rows, whole, run};

}  // namespace consonant
