// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rope/rope.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void turn(const RopeAttr& attr, const float* x, const float* angles, float* y, int64_t dim) {
  const int64_t half = attr.dims / 2, step = attr.neighbours ? 2 : 1, other = attr.neighbours ? 1 : half;
  for (int64_t i = 0; i < half; ++i) {
    const double a = x[i * step], b = x[i * step + other], cosine = angles[i], sine = angles[half + i];
    y[i * step] = static_cast<float>(a * cosine - b * sine);
    y[i * step + other] = static_cast<float>(b * cosine + a * sine);
  }
  std::copy(x + attr.dims, x + dim, y + attr.dims);
}

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &angles = args.in[1], &y = args.out[0];
  const int64_t heads = y.shape[1];
  for (int64_t r = 0; r < y.rows(); ++r)
    turn(args.attr<RopeAttr>(), x.row<float>(r), angles.row<float>(r / heads), y.row<float>(r), y.last());
}

}  // namespace

extern const Kernel rope_ref = {DeviceKind::reference, Op::rope, wants_float_rows, whole, run};

}  // namespace consonant
