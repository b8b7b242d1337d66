// SPDX-License-Identifier: Apache-2.0
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const float *w = args.in[1].as<float>(), *b = args.in[2].as<float>();
  const int64_t n = y.last(), kernel = args.in[1].shape[0] / n;
  for (int64_t t = 0; t < y.rows(); ++t)
    for (int64_t c = 0; c < n; ++c) {
      double sum = b[c];
      for (int64_t k = 0; k < kernel; ++k) sum += double{w[k * n + c]} * x.row<float>(t + k)[c];
      y.row<float>(t)[c] = static_cast<float>(sum);
    }
}

}  // namespace

extern const Kernel depthwise_ref = {DeviceKind::reference, Op::depthwise, wants_float_rows, whole, run};

}  // namespace consonant
