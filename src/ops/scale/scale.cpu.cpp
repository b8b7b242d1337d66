// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/scale.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 16384;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }
void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const float factor = args.attr<ScaleAttr>().factor;
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    for (int64_t i = 0; i < y.last(); ++i) y.row<float>(r)[i] = x.row<float>(r)[i] * factor;
}

}  // namespace

extern const Kernel scale_cpu = {DeviceKind::cpu, Op::scale, wants_float_rows, work, run};

}  // namespace consonant
