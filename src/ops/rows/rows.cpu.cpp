// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/gather.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 4096;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &index = args.in[1], &y = args.out[0];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    gather_row(x, index.as<int32_t>()[r], y.row<float>(r));
}

}  // namespace

extern const Kernel rows_cpu = {DeviceKind::cpu, Op::rows, wants_rows, work, run};

}  // namespace consonant
