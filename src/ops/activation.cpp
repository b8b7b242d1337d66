// SPDX-License-Identifier: Apache-2.0
#include "ops/activation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/activation.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: both are compiled once a target.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// exp(x), infinite where it leaves float32's range, for which Exp has no answer. A large finite divisor wouldn't do:
// the numerator may be as large.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V saturated_exp(D d, V x) {
  const V most = hn::Set(d, 88.0f);
  return hn::IfThenElse(hn::Gt(x, most), hn::Inf(d), hn::Exp(d, hn::Min(x, most)));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V silu(D d, V x) {
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), saturated_exp(d, hn::Neg(x))));
}

// x / 2 (1 + tanh u) = x / (1 + exp(-2u))
template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu(D d, V x) {
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V u = hn::Mul(hn::Set(d, 0.7978845608f), hn::MulAdd(hn::Set(d, 0.044715f), cube, x));
  return hn::Div(x, hn::Add(hn::Set(d, 1.0f), saturated_exp(d, hn::Mul(hn::Set(d, -2.0f), u))));
}

template <bool is_gelu, class D>
HWY_INLINE void vector_at(D d, const float* x, const float* b, float* y) {
  auto v = hn::LoadU(d, x);
  v = is_gelu ? gelu(d, v) : silu(d, v);
  if (b) v = hn::Mul(v, hn::LoadU(d, b));
  hn::StoreU(v, d, y);
}

template <bool is_gelu>
HWY_INLINE void activate_row(const float* x, const float* b, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) vector_at<is_gelu>(d, x + i, b ? b + i : nullptr, y + i);
  if (i == n) return;
  // The rest goes through a whole vector as well, so that no element is computed otherwise.
  HWY_ALIGN float xs[hn::MaxLanes(d)] = {}, bs[hn::MaxLanes(d)] = {}, ys[hn::MaxLanes(d)];
  std::copy(x + i, x + n, xs);
  if (b) std::copy(b + i, b + n, bs);
  vector_at<is_gelu>(d, xs, b ? bs : nullptr, ys);
  std::copy(ys, ys + (n - i), y + i);
}

void activate_rows(Activation f, const float* x, const float* b, float* y, int64_t n) {
  if (f == Activation::gelu)
    activate_row<true>(x, b, y, n);
  else
    activate_row<false>(x, b, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(activate_rows);

void activate(Activation f, const float* x, const float* b, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(activate_rows)(f, x, b, y, n);
}

}  // namespace consonant
#endif
