// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/magnitude/magnitude.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 8192;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

// In double the squares neither overflow nor vanish.
void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t n = y.last();
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float *re = x.row<float>(r), *im = re + n;
    float* to = y.row<float>(r);
    for (int64_t i = 0; i < n; ++i)
      to[i] = static_cast<float>(std::sqrt(double{re[i]} * double{re[i]} + double{im[i]} * double{im[i]}));
  }
}

}  // namespace

extern const Kernel magnitude_cpu = {DeviceKind::cpu, Op::magnitude, wants_float_rows, work, run};

}  // namespace consonant
