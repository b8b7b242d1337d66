// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/rope/rope.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void turn(const RopeAttr& attr, const float* x, const float* angles, float* y, int64_t dim) {
  const int64_t half = attr.dims / 2, step = attr.neighbours ? 2 : 1, other = attr.neighbours ? 1 : half;
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i * step], b = x[i * step + other], cosine = angles[i], sine = angles[half + i];
    y[i * step] = a * cosine - b * sine;
    y[i * step + other] = b * cosine + a * sine;
  }
  std::copy(x + attr.dims, x + dim, y + attr.dims);
}

constexpr int64_t chunk_elements = 16384;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }
void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &angles = args.in[1], &y = args.out[0];
  const int64_t heads = y.shape[1];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    turn(args.attr<RopeAttr>(), x.row<float>(r), angles.row<float>(r / heads), y.row<float>(r), y.last());
}

}  // namespace

extern const Kernel rope_cpu = {DeviceKind::cpu, Op::rope, wants_float_rows, work, run};

}  // namespace consonant
