// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/log_floor/log_floor.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 16384;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto a = args.attr<LogFloorAttr>();
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float* from = x.row<float>(r);
    float* to = y.row<float>(r);
    for (int64_t i = 0; i < y.last(); ++i) to[i] = std::log(std::max(from[i], a.least));
  }
}

}  // namespace

extern const Kernel log_floor_cpu = {DeviceKind::cpu, Op::log_floor, wants_float_rows, work, run};

}  // namespace consonant
