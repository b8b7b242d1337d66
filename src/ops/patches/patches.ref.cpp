// SPDX-License-Identifier: Apache-2.0
#include "ops/patches/patches.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto& a = args.attr<PatchesAttr>();
  const int64_t time = x.shape[1], n = x.shape[2];
  if (x.shape[0] == 0) return;
  const int64_t frames = y.shape[0] / x.shape[0];
  for (int64_t r = 0; r < y.shape[0]; ++r)
    for (int64_t k = 0; k < a.kernel; ++k)
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = edge_row(a.edge, r % frames * a.stride - a.before + k, time);
        y.row<float>(r)[k * n + i] = row < 0 ? 0 : x.row<float>(r / frames * time + row)[i];
      }
}

}  // namespace

extern const Kernel patches_ref = {DeviceKind::reference, Op::patches, wants_float_rows, whole, run};

}  // namespace consonant
