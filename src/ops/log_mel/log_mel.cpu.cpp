// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/log_mel/log_mel.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 65536;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

float level(float x) { return std::log10(std::max(1e-10f, x)); }

// Every chunk looks for the peak itself: that is cheaper than waiting for another node, since only energies are
// compared and one logarithm taken.
float greatest(const View& x) {
  float sums[16] = {};
  for (int64_t r = 0; r < x.rows(); ++r) {
    const float* row = x.row<float>(r);
    int64_t i = 0;
    for (; i + 16 <= x.last(); i += 16)
      for (int j = 0; j < 16; ++j) sums[j] = std::max(sums[j], row[i + j]);
    for (; i < x.last(); ++i) sums[0] = std::max(sums[0], row[i]);
  }
  return *std::max_element(sums, sums + 16);
}

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const float peak = std::max(args.in[1].as<float>()[0], level(greatest(x)));
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    for (int64_t i = 0; i < y.last(); ++i) y.row<float>(r)[i] = (std::max(level(x.row<float>(r)[i]), peak - 8) + 4) / 4;
  if (chunk == 0) args.out[1].as<float>()[0] = peak;
}

}  // namespace

extern const Kernel log_mel_cpu = {DeviceKind::cpu, Op::log_mel, wants_float_rows, work, run};

}  // namespace consonant
