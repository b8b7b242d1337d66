// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/activation.hpp"
#include "ops/gated_norm/gated_norm.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 8192;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

// Sixteen partial sums, then their sum in a fixed order: the compiler keeps them in vectors.
float sum_of_squares(const float* x, int64_t n) {
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; ++j) sums[j] += x[i + j] * x[i + j];
  for (int j = 0; i < n; ++i, ++j) sums[j] += x[i] * x[i];
  for (int step = 8; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) sums[j] += sums[j + step];
  return sums[0];
}

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &z = args.in[1], &y = args.out[0];
  const auto* w = args.in[2].as<float>();
  const auto& attr = args.attr<GatedNormAttr>();
  const int64_t n = y.last() / attr.groups;
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    float* to = y.row<float>(r);
    activate(Activation::silu, z.row<float>(r), x.row<float>(r), to, y.last());
    for (int64_t first = 0; first < y.last(); first += n) {
      const float mean = sum_of_squares(to + first, n) / static_cast<float>(n);
      const float scale = 1 / std::sqrt(mean + attr.epsilon);
      for (int64_t i = first; i < first + n; ++i) to[i] = to[i] * scale * w[i];
    }
  }
}

}  // namespace

extern const Kernel gated_norm_cpu = {DeviceKind::cpu, Op::gated_norm, wants_float_rows, work, run};

}  // namespace consonant
