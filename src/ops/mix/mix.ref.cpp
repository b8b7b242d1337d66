// SPDX-License-Identifier: Apache-2.0
#include "ops/mix/mix.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &weights = args.in[1], &y = args.out[0];
  const int64_t used = x.shape[1];
  for (int64_t t = 0; t < y.rows(); ++t)
    for (int64_t i = 0; i < y.last(); ++i) {
      double sum = args.in.size() > 2 ? args.in[2].row<float>(t)[i] : 0;
      for (int64_t u = 0; u < used; ++u) sum += double{x.row<float>(t * used + u)[i]} * weights.row<float>(t)[u];
      y.row<float>(t)[i] = static_cast<float>(sum);
    }
}

}  // namespace

extern const Kernel mix_ref = {DeviceKind::reference, Op::mix, wants_float_rows, whole, run};

}  // namespace consonant
