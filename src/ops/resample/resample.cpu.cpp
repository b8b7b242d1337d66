// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/resample/filter.hpp"
#include "ops/resample/resample.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

constexpr int lanes = 16;

ResampleFilter filter_of(const Args& args) {
  return {args.attr<ResampleAttr>().rate_in, args.attr<ResampleAttr>().rate_out};
}

// Many samples a chunk, since each makes the filter's weights anew.
int64_t chunk_elements(const ResampleFilter& filter) { return std::max<int64_t>(65536, 8 * filter.up); }

Work work(const Args& args) {
  const ResampleFilter filter = filter_of(args);
  return {ceil_div(args.out[0].shape.count(), chunk_elements(filter)),
          filter.up * filter.taps() * static_cast<int64_t>(sizeof(float))};
}

// Sixteen partial sums, which the compiler keeps in vectors.
float product(const float* a, const float* b, int64_t n) {
  float sums[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int j = 0; j < lanes; ++j) sums[j] += a[i + j] * b[i + j];
  for (int j = 0; i < n; ++i, ++j) sums[j] += a[i] * b[i];
  for (int step = lanes / 2; step > 0; step /= 2)
    for (int j = 0; j < step; ++j) sums[j] += sums[j + step];
  return sums[0];
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &y = args.out[0];
  const ResampleFilter filter = filter_of(args);
  const int64_t taps = filter.taps(), n = x.last();
  const auto weights = reinterpret_cast<float*>(scratch);
  for (int64_t p = 0; p < filter.up; ++p)
    for (int64_t j = 0; j < taps; ++j) weights[p * taps + j] = resample_weight(filter.distance(p, j), filter.scale);
  const int64_t first = chunk * chunk_elements(filter),
                last = std::min(first + chunk_elements(filter), y.shape.count());
  for (int64_t i = first; i < last; ++i) {
    const int64_t r = i / y.last(), m = i % y.last(), from = filter.first(m);
    const int64_t begin = std::max<int64_t>(0, -from), end = std::min(taps, n - from);
    y.row<float>(r)[m] =
        begin < end ? product(weights + filter.phase(m) * taps + begin, x.row<float>(r) + from + begin, end - begin)
                    : 0;
  }
}

}  // namespace

extern const Kernel resample_cpu = {DeviceKind::cpu, Op::resample, wants_float_rows, work, run};

}  // namespace consonant
