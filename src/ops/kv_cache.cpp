// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_cache.hpp"

#include <algorithm>
#include <cmath>

#include "tensor/half.hpp"

namespace consonant {

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
    for (int64_t i = 0; i < 32; ++i) greatest = std::max(greatest, std::fabs(x[block * 32 + i]));
    const Half scale = to_half(greatest / 127);
    const float inverse = scale.bits ? 1 / to_float(scale) : 0;
    scales(head)[scale_at(position, block)] = scale.bits;
    for (int64_t i = 0; i < 32; ++i) {
      const float q = std::nearbyint(x[block * 32 + i] * inverse);
      numbers<int8_t>(head)[at(position, block * 32 + i)] = static_cast<int8_t>(std::clamp(q, -127.0f, 127.0f));
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
