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

template <class D, class V = hn::Vec<D>>
HWY_INLINE V gelu_erf(D d, V x) {
  constexpr NormalTail normal;
  const V a = hn::Abs(x);
  V p = hn::Set(d, normal.coefficients[0]);
  for (int i = 1; i < normal.count; ++i) p = hn::MulAdd(p, a, hn::Set(d, normal.coefficients[i]));
  const auto near = hn::Lt(a, hn::Set(d, normal.end));
  const V tail = hn::IfThenElseZero(near, hn::Mul(a, hn::Exp(d, hn::IfThenElseZero(near, p))));
  // 0 times x keeps what is no number, and of minus infinity makes it so, as the product x Phi(x) does.
  return hn::Sub(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, hn::Zero(d)), x), tail);
}

// A comparison, since the maximum of 0 and what is no number may be either.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V relu(D d, V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V relu_squared(D d, V x) {
  const V y = relu(d, x);
  return hn::Mul(y, y);
}

// What is no number is kept apart: saturated_exp makes it one.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Div(one, hn::Add(one, saturated_exp(d, hn::Neg(x)))));
}

// exp(x) - 1 below zero, without what cancels near it.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V elu(D d, V x) {
  const auto below = hn::Lt(x, hn::Zero(d));
  return hn::IfThenElse(below, hn::Expm1(d, hn::Max(hn::IfThenElseZero(below, x), hn::Set(d, -88.0f))), x);
}

// Beyond 10 it is one in float32; what is no number is kept apart.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V inside = hn::Clamp(x, hn::Set(d, -10.0f), hn::Set(d, 10.0f));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, inside));
}

template <Activation f, class D>
HWY_INLINE void vector_at(D d, const float* x, const float* b, float* y) {
  auto v = hn::LoadU(d, x);
  if constexpr (f == Activation::silu) v = silu(d, v);
  if constexpr (f == Activation::gelu) v = gelu(d, v);
  if constexpr (f == Activation::gelu_erf) v = gelu_erf(d, v);
  if constexpr (f == Activation::relu) v = relu(d, v);
  if constexpr (f == Activation::relu_squared) v = relu_squared(d, v);
  if constexpr (f == Activation::sigmoid) v = sigmoid(d, v);
  if constexpr (f == Activation::elu) v = elu(d, v);
  if constexpr (f == Activation::tanh) v = tanh(d, v);
  if (b) v = hn::Mul(v, hn::LoadU(d, b));
  hn::StoreU(v, d, y);
}

template <Activation f>
HWY_INLINE void activate_row(const float* x, const float* b, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) vector_at<f>(d, x + i, b ? b + i : nullptr, y + i);
  if (i == n) return;
  // The rest goes through a whole vector as well, so that no element is computed otherwise.
  HWY_ALIGN float xs[hn::MaxLanes(d)] = {}, bs[hn::MaxLanes(d)] = {}, ys[hn::MaxLanes(d)];
  std::copy(x + i, x + n, xs);
  if (b) std::copy(b + i, b + n, bs);
  vector_at<f>(d, xs, b ? bs : nullptr, ys);
  std::copy(ys, ys + (n - i), y + i);
}

void activate_rows(Activation f, const float* x, const float* b, float* y, int64_t n) {
  switch (f) {
    case Activation::silu:
      return activate_row<Activation::silu>(x, b, y, n);
    case Activation::gelu:
      return activate_row<Activation::gelu>(x, b, y, n);
    case Activation::gelu_erf:
      return activate_row<Activation::gelu_erf>(x, b, y, n);
    case Activation::relu:
      return activate_row<Activation::relu>(x, b, y, n);
    case Activation::relu_squared:
      return activate_row<Activation::relu_squared>(x, b, y, n);
    case Activation::sigmoid:
      return activate_row<Activation::sigmoid>(x, b, y, n);
    case Activation::elu:
      return activate_row<Activation::elu>(x, b, y, n);
    case Activation::tanh:
      return activate_row<Activation::tanh>(x, b, y, n);
  }
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
