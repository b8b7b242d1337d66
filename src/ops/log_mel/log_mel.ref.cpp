// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/log_mel/log_mel.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

double level(float x) { return std::log10(std::max(1e-10, double{x})); }

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  double peak = args.in[1].as<float>()[0];
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t i = 0; i < x.last(); ++i) peak = std::max(peak, level(x.row<float>(r)[i]));
  for (int64_t r = 0; r < x.rows(); ++r)
    for (int64_t i = 0; i < x.last(); ++i)
      y.row<float>(r)[i] = static_cast<float>((std::max(level(x.row<float>(r)[i]), peak - 8) + 4) / 4);
  args.out[1].as<float>()[0] = static_cast<float>(peak);
}

}  // namespace

extern const Kernel log_mel_ref = {DeviceKind::reference, Op::log_mel, wants_float_rows, whole, run};

}  // namespace consonant
