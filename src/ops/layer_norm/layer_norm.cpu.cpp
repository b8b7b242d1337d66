// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/layer_norm/layer_norm.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 16384;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

// Sum of f(x[i]): sixteen partial sums, then their sum in a fixed order. The compiler keeps them in vectors.
template <class F>
float sum_of(const float* x, int64_t n, F f) {
  float sums[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; ++j) sums[j] += f(x[i + j]);
  for (int j = 0; i < n; ++i, ++j) sums[j] += f(x[i]);
  for (int step = 8; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) sums[j] += sums[j + step];
  return sums[0];
}

// Two passes: the squares of differences from the mean cancel nothing, however large the mean.
void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const auto *w = args.in[1].as<float>(), *b = args.in[2].as<float>();
  const int64_t n = y.last();
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float* from = x.row<float>(r);
    float* to = y.row<float>(r);
    const float mean = sum_of(from, n, [](float v) { return v; }) / static_cast<float>(n);
    const float variance = sum_of(from, n, [mean](float v) { return (v - mean) * (v - mean); }) / static_cast<float>(n);
    const float scale = 1 / std::sqrt(variance + args.attr<LayerNormAttr>().epsilon);
    for (int64_t i = 0; i < n; ++i) to[i] = (from[i] - mean) * scale * w[i] + b[i];
  }
}

}  // namespace

extern const Kernel layer_norm_cpu = {DeviceKind::cpu, Op::layer_norm, wants_float_rows, work, run};

}  // namespace consonant
