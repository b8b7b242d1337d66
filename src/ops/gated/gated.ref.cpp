// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &gate = args.in[0], &x = args.in[1], &y = args.out[0];
  const Activation f = args.attr<GatedAttr>().activation;
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t i = 0; i < y.last(); ++i)
      y.row<float>(r)[i] = static_cast<float>(exact(f, gate.row<float>(r)[i]) * x.row<float>(r)[i]);
}

}  // namespace

extern const Kernel gated_ref = {DeviceKind::reference, Op::gated, wants_float_rows, whole, run};

}  // namespace consonant
