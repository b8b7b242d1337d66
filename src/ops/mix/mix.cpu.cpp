// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/mix/mix.hpp"
#include "ops/work.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/mix/mix.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: compiled once a target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void add_lanes(D d, const float* x, float weight, float* y) {
  hn::StoreU(hn::MulAdd(hn::LoadU(d, x), hn::Set(d, weight), hn::LoadU(d, y)), d, y);
}

// y = fma(x, weight, y)
void add_weighed(const float* x, float weight, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) add_lanes(d, x + i, weight, y + i);
  for (; i < n; ++i) add_lanes(hn::CappedTag<float, 1>(), x + i, weight, y + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(add_weighed);

namespace {

constexpr int64_t chunk_elements = 4096;

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &weights = args.in[1], &y = args.out[0];
  const int64_t used = x.shape[1];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t t = chunks.first(chunk); t < chunks.last(chunk); ++t) {
    std::fill_n(y.row<float>(t), y.last(), 0.0f);
    for (int64_t u = 0; u < used; ++u) HWY_DYNAMIC_DISPATCH(add_weighed)
    (x.row<float>(t * used + u), weights.row<float>(t)[u], y.row<float>(t), y.last());
    if (args.in.size() > 2) HWY_DYNAMIC_DISPATCH(add_weighed)(args.in[2].row<float>(t), 1, y.row<float>(t), y.last());
  }
}

}  // namespace

extern const Kernel mix_cpu = {DeviceKind::cpu, Op::mix, wants_float_rows, work, run};

}  // namespace consonant
#endif
