// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/inputs.hpp"
#include "ops/kernel.hpp"

namespace consonant {

// Refuses caches of other types than f32, f16 and q8_0, or of two types.
Refusal wants_cache(const Tensor& keys, const Tensor& values);
// Refuses x [token, head, dim] that isn't float32 or whose rows aren't contiguous.
Refusal wants_head_rows(const Tensor& x, std::string_view role);

// One page of keys or of values, as graph/inputs.hpp lays it out.
class KvPage {
 public:
  // `state`: keys [page, head, dim, kv_page] or values [page, head, kv_page, dim].
  KvPage(const View& state, StateKind kind, int64_t page);

  void write(int64_t head, int64_t position, const float* x) const;  // a row of `dim` numbers
  // Rows of neighbouring positions, `stride` numbers apart; the same bits as row by row.
  void write_rows(int64_t head, int64_t position, int64_t rows, const float* x, int64_t stride) const;
  float read(int64_t head, int64_t position, int64_t i) const;  // number i of a row

  void decode(int64_t head, float* to) const;  // all of a head's numbers, in their order on the page

  // The numbers of a head, and of a q8_0 page the scales of a head.
  template <class T>
  T* numbers(int64_t head) const {
    return reinterpret_cast<T*>(data_) + head * dim_ * kv_page;
  }
  uint16_t* scales(int64_t head) const {
    return reinterpret_cast<uint16_t*>(data_ + heads_ * dim_ * kv_page) + head * (dim_ / 32) * kv_page;
  }
  int64_t dim() const { return dim_; }
  int64_t heads() const { return heads_; }

 private:
  int64_t at(int64_t position, int64_t i) const {
    return kind_ == StateKind::keys ? i * kv_page + position : position * dim_ + i;
  }
  int64_t scale_at(int64_t position, int64_t block) const {
    return kind_ == StateKind::keys ? block * kv_page + position : position * (dim_ / 32) + block;
  }

  StateKind kind_;
  DType type_;
  int64_t heads_, dim_;
  std::byte* data_;
};

}  // namespace consonant
