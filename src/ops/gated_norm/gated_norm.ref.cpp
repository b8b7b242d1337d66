// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/activation.hpp"
#include "ops/gated_norm/gated_norm.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &z = args.in[1], &y = args.out[0];
  const auto* w = args.in[2].as<float>();
  const auto& attr = args.attr<GatedNormAttr>();
  const int64_t n = y.last() / attr.groups;
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t first = 0; first < y.last(); first += n) {
      const auto gated = [&](int64_t i) { return double{x.row<float>(r)[i]} * exact_silu(z.row<float>(r)[i]); };
      double sum = 0;
      for (int64_t i = first; i < first + n; ++i) sum += gated(i) * gated(i);
      const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + attr.epsilon);
      for (int64_t i = first; i < first + n; ++i) y.row<float>(r)[i] = static_cast<float>(gated(i) * scale * w[i]);
    }
}

}  // namespace

extern const Kernel gated_norm_ref = {DeviceKind::reference, Op::gated_norm, wants_float_rows, whole, run};

}  // namespace consonant
