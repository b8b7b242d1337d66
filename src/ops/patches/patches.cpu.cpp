// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/patches/patches.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 65536;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto& a = args.attr<PatchesAttr>();
  const int64_t time = x.shape[1], n = x.shape[2], frames = x.shape[0] == 0 ? 1 : y.shape[0] / x.shape[0];
  const bool dense = x.strides[1] == n;  // the rows of a group follow one another
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const int64_t group = r / frames * time, first = r % frames * a.stride - a.before, last = first + a.kernel;
    float* to = y.row<float>(r);
    const auto outside = [&](int64_t from, int64_t until) {
      for (int64_t t = from; t < until; ++t) {
        const int64_t row = edge_row(a.edge, t, time);
        if (row < 0)
          std::fill_n(to + (t - first) * n, n, 0.0f);
        else
          std::copy_n(x.row<float>(group + row), n, to + (t - first) * n);
      }
    };
    const int64_t begin = std::clamp<int64_t>(first, 0, time), end = std::clamp<int64_t>(last, begin, time);
    outside(first, std::min<int64_t>(last, 0));
    if (dense) {
      if (end > begin) std::copy_n(x.row<float>(group + begin), (end - begin) * n, to + (begin - first) * n);
    } else {
      for (int64_t t = begin; t < end; ++t) std::copy_n(x.row<float>(group + t), n, to + (t - first) * n);
    }
    outside(std::max(first, time), last);
  }
}

}  // namespace

extern const Kernel patches_cpu = {DeviceKind::cpu, Op::patches, wants_float_rows, work, run};

}  // namespace consonant
