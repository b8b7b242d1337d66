// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/softmax/softmax.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int64_t chunk_elements = 4096;
constexpr int lanes = 16;  // parts of sums and maxima, which the compiler keeps in vectors

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

float greatest(const float* x, int64_t n) {
  float top[lanes];
  for (float& t : top) t = -INFINITY;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int j = 0; j < lanes; ++j) top[j] = x[i + j] > top[j] ? x[i + j] : top[j];
  for (; i < n; ++i) top[0] = x[i] > top[0] ? x[i] : top[0];
  for (int j = 1; j < lanes; ++j) top[0] = top[j] > top[0] ? top[j] : top[0];
  return top[0];
}

float sum_of(const float* x, int64_t n) {
  float sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int j = 0; j < lanes; ++j) sums[j] += x[i + j];
  for (int j = 0; i < n; ++i, ++j) sums[j] += x[i];
  for (int step = lanes / 2; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) sums[j] += sums[j + step];
  return sums[0];
}

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t n = y.last();
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    const float* from = x.row<float>(r);
    float* to = y.row<float>(r);
    const float top = greatest(from, n), shift = top == -INFINITY ? 0 : top;
    for (int64_t i = 0; i < n; ++i) to[i] = std::exp(from[i] - shift);
    const float sum = sum_of(to, n), factor = sum == 0 ? 0 : 1 / sum;
    for (int64_t i = 0; i < n; ++i) to[i] *= factor;
  }
}

}  // namespace

extern const Kernel softmax_cpu = {DeviceKind::cpu, Op::softmax, wants_float_rows, work, run};

}  // namespace consonant
