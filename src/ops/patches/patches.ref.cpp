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
        int64_t row = r % frames * a.stride - a.before + k;
        bool inside = row >= 0 && row < time;
        if (a.edge == Edge::mirror && !inside) {
          row = row < 0 ? -row : 2 * (time - 1) - row;
          inside = true;
        }
        y.row<float>(r)[k * n + i] = inside ? x.row<float>(r / frames * time + row)[i] : 0;
      }
}

}  // namespace

extern const Kernel patches_ref = {DeviceKind::reference, Op::patches, wants_float_rows, whole, run};

}  // namespace consonant
