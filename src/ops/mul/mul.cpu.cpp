// SPDX-License-Identifier: Apache-2.0
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 16384;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &a = args.in[0], &b = args.in[1], &y = args.out[0];
  const bool vector = b.shape.rank() == 1;
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float* left = a.row<float>(r);
    const float* right = vector ? b.as<float>() : b.row<float>(r);
    float* to = y.row<float>(r);
    for (int64_t i = 0; i < y.last(); ++i) to[i] = left[i] * right[i];
  }
}

}  // namespace

extern const Kernel mul_cpu = {DeviceKind::cpu, Op::mul, wants_float_rows, work, run};

}  // namespace consonant
