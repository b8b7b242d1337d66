// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 65536;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View& y = args.out[0];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    float* to = y.row<float>(r);
    for (const View& part : args.in) to = std::copy_n(part.row<float>(part.rows() == 1 ? 0 : r), part.last(), to);
  }
}

}  // namespace

extern const Kernel beside_cpu = {DeviceKind::cpu, Op::beside, wants_float_rows, work, run};

}  // namespace consonant
