// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/half_rows.hpp"
#include "tensor/half.hpp"

namespace consonant {

Refusal wants_cache(const Tensor& keys, const Tensor& values) {
  const DType type = keys.type();
  if (values.type() != type) return {fmt::format("keys are {}, values {}", name(type), name(values.type()))};
  if (type != DType::f32 && type != DType::f16 && type != DType::q8_0)
    return {fmt::format("the cache is {}, not f32, f16 or q8_0", name(type))};
  return {};
}

Refusal wants_head_rows(const Tensor& x, std::string_view role) {
  if (x.type() != DType::f32) return {fmt::format("{} must be f32", role)};
  if (x.node->outputs[static_cast<size_t>(x.output)].strides[2] != 1)
    return {fmt::format("{}'s rows aren't contiguous", role)};
  return {};
}

KvPage::KvPage(const View& state, StateKind kind, int64_t page)
    : kind_(kind),
      type_(state.type),
      heads_(state.shape[1]),
      dim_(kind == StateKind::keys ? state.shape[2] : state.shape[3]),
      data_(state.data + page * kv_page_bytes(state.type, heads_, dim_)) {}

void KvPage::write(int64_t head, int64_t position, const float* x) const {
  switch (type_) {
    case DType::f32:
      for (int64_t i = 0; i < dim_; ++i) numbers<float>(head)[at(position, i)] = x[i];
      return;
    case DType::f16:
      for (int64_t i = 0; i < dim_; ++i) numbers<uint16_t>(head)[at(position, i)] = to_half(x[i]).bits;
      return;
    default:
      break;  // q8_0, which the builder has checked
  }
  for (int64_t block = 0; block < dim_ / 32; ++block) {
    float greatest = 0;
    bool finite = true;
    for (int64_t i = 0; i < 32; ++i) {
      finite = finite && std::isfinite(x[block * 32 + i]);
      greatest = std::max(greatest, std::fabs(x[block * 32 + i]));
    }
    const Half scale = to_half(finite ? greatest / 127 : std::numeric_limits<float>::quiet_NaN());
    if (!std::isfinite(to_float(scale))) {  // no number of the block can be held: all of them read as NaN
      scales(head)[scale_at(position, block)] = to_half(std::numeric_limits<float>::quiet_NaN()).bits;
      for (int64_t i = 0; i < 32; ++i) numbers<int8_t>(head)[at(position, block * 32 + i)] = 0;
      continue;
    }
    const float inverse = scale.bits ? 1 / to_float(scale) : 0;
    scales(head)[scale_at(position, block)] = scale.bits;
    for (int64_t i = 0; i < 32; ++i) {
      const float q = std::nearbyint(x[block * 32 + i] * inverse);
      numbers<int8_t>(head)[at(position, block * 32 + i)] = static_cast<int8_t>(std::clamp(q, -127.0f, 127.0f));
    }
  }
}

void KvPage::write_rows(int64_t head, int64_t position, int64_t rows, const float* x, int64_t stride) const {
  if (type_ != DType::f32 && type_ != DType::f16) {
    for (int64_t r = 0; r < rows; ++r) write(head, position + r, x + r * stride);
    return;
  }
  const auto store = [&](const float* from, int64_t at, int64_t n) {
    if (type_ == DType::f32)
      std::copy_n(from, n, numbers<float>(head) + at);
    else
      to_halves(from, numbers<uint16_t>(head) + at, n);
  };
  if (kind_ == StateKind::values) {
    for (int64_t r = 0; r < rows; ++r) store(x + r * stride, at(position + r, 0), dim_);
    return;
  }
  float turned[kv_page];
  for (int64_t i = 0; i < dim_; ++i) {
    for (int64_t r = 0; r < rows; ++r) turned[r] = x[r * stride + i];
    store(turned, at(position, i), rows);
  }
}

void KvPage::decode(int64_t head, float* to) const {
  const int64_t n = dim_ * kv_page;
  if (type_ == DType::f32) {
    std::copy_n(numbers<float>(head), n, to);
  } else if (type_ == DType::f16) {
    from_halves(numbers<uint16_t>(head), to, n);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t scale = kind_ == StateKind::keys ? i / kv_page / 32 * kv_page + i % kv_page : i / 32;
      to[i] = to_float(Half{scales(head)[scale]}) * numbers<int8_t>(head)[i];
    }
  }
}

float KvPage::read(int64_t head, int64_t position, int64_t i) const {
  const int64_t n = at(position, i);
  switch (type_) {
    case DType::f32:
      return numbers<float>(head)[n];
    case DType::f16:
      return to_float(Half{numbers<uint16_t>(head)[n]});
    default:
      return to_float(Half{scales(head)[scale_at(position, i / 32)]}) * numbers<int8_t>(head)[n];
  }
}

}  // namespace consonant
