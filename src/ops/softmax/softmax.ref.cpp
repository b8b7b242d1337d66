// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/softmax/softmax.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  for (int64_t r = 0; r < y.rows(); ++r) {
    const float* from = x.row<float>(r);
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < y.last(); ++i) top = std::max(top, double{from[i]});
    if (top == -INFINITY) top = 0;
    for (int64_t i = 0; i < y.last(); ++i) sum += std::exp(from[i] - top);
    for (int64_t i = 0; i < y.last(); ++i)
      y.row<float>(r)[i] = static_cast<float>(std::exp(from[i] - top) * (sum == 0 ? 0 : 1 / sum));
  }
}

}  // namespace

extern const Kernel softmax_ref = {DeviceKind::reference, Op::softmax, wants_float_rows, whole, run};

}  // namespace consonant
