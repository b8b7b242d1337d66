// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/pad_rows/pad_rows.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 65536;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const PadRowsAttr& a = args.attr<PadRowsAttr>();
  const int64_t n = y.shape[1];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const int64_t from = edge_row(a.edge, r - a.before, x.shape[0]);
    if (from < 0)
      std::fill_n(y.row<float>(r), n, 0.0f);
    else
      std::copy_n(x.row<float>(from), n, y.row<float>(r));
  }
}

}  // namespace

extern const Kernel pad_rows_cpu = {DeviceKind::cpu, Op::pad_rows, wants_float_rows, work, run};

}  // namespace consonant
