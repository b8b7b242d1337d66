// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/layer_norm/layer_norm.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto *w = args.in[1].as<float>(), *b = args.in[2].as<float>();
  const auto n = static_cast<double>(y.last());
  for (int64_t r = 0; r < y.rows(); ++r) {
    const float* from = x.row<float>(r);
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < y.last(); ++i) mean += from[i] / n;
    for (int64_t i = 0; i < y.last(); ++i) variance += (from[i] - mean) * (from[i] - mean) / n;
    const double scale = 1 / std::sqrt(variance + args.attr<LayerNormAttr>().epsilon);
    for (int64_t i = 0; i < y.last(); ++i)
      y.row<float>(r)[i] = static_cast<float>((from[i] - mean) * scale * w[i] + b[i]);
  }
}

}  // namespace

extern const Kernel layer_norm_ref = {DeviceKind::reference, Op::layer_norm, wants_float_rows, whole, run};

}  // namespace consonant
