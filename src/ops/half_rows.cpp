// SPDX-License-Identifier: Apache-2.0
#include "ops/half_rows.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/half_rows.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: compiled once a target.
#include <hwy/highway.h>

#include "tensor/half.hpp"

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void halves(const float* x, uint16_t* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::DemoteTo(half, hn::LoadU(d, x + i)), half, reinterpret_cast<hwy::float16_t*>(y + i));
  for (; i < n; ++i) y[i] = to_half(x[i]).bits;
}

void floats(const uint16_t* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> half;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::PromoteTo(d, hn::LoadU(half, reinterpret_cast<const hwy::float16_t*>(x + i))), d, y + i);
  for (; i < n; ++i) y[i] = to_float(Half{x[i]});
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(halves);
HWY_EXPORT(floats);

void to_halves(const float* x, uint16_t* y, int64_t n) { HWY_DYNAMIC_DISPATCH(halves)(x, y, n); }
void from_halves(const uint16_t* x, float* y, int64_t n) { HWY_DYNAMIC_DISPATCH(floats)(x, y, n); }

}  // namespace consonant
#endif
