// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/root/root.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 16384;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto a = args.attr<RootAttr>();
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float* from = x.row<float>(r);
    float* to = y.row<float>(r);
    for (int64_t i = 0; i < y.last(); ++i) to[i] = std::sqrt(from[i] + a.plus);
  }
}

}  // namespace

extern const Kernel root_cpu = {DeviceKind::cpu, Op::root, wants_float_rows, work, run};

}  // namespace consonant
