// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/magnitude/magnitude.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t n = y.last();
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t i = 0; i < n; ++i) {
      const double re = x.row<float>(r)[i], im = x.row<float>(r)[n + i];
      y.row<float>(r)[i] = static_cast<float>(std::sqrt(re * re + im * im));
    }
}

}  // namespace

extern const Kernel magnitude_ref = {DeviceKind::reference, Op::magnitude, wants_float_rows, whole, run};

}  // namespace consonant
