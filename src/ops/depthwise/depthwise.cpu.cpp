// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 8192;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t n = y.last(), kernel = args.in[1].shape[0] / n;
  const RowChunks chunks(y, chunk_elements);
  for (int64_t t = chunks.first(chunk); t < chunks.last(chunk); ++t) {
    float* to = y.row<float>(t);
    std::copy_n(args.in[2].as<float>(), n, to);
    for (int64_t k = 0; k < kernel; ++k) {
      const float *from = x.row<float>(t + k), *tap = args.in[1].as<float>() + k * n;
      for (int64_t c = 0; c < n; ++c) to[c] += tap[c] * from[c];
    }
  }
}

}  // namespace

extern const Kernel depthwise_cpu = {DeviceKind::cpu, Op::depthwise, wants_float_rows, work, run};

}  // namespace consonant
