// SPDX-License-Identifier: Apache-2.0
#include "ops/cumsum/cumsum.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 16384;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

// One after the other, and so in double: a chain of n float32 roundings would lose log2(n) bits.
void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float* from = x.row<float>(r);
    float* to = y.row<float>(r);
    double sum = 0;
    for (int64_t i = 0; i < y.last(); ++i) {
      sum += double{from[i]};
      to[i] = static_cast<float>(sum);
    }
  }
}

}  // namespace

extern const Kernel cumsum_cpu = {DeviceKind::cpu, Op::cumsum, wants_float_rows, work, run};

}  // namespace consonant
