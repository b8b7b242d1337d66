// SPDX-License-Identifier: Apache-2.0
#include "graph/shape.hpp"

#include <fmt/format.h>

#include "base/checked.hpp"

namespace consonant {

Shape make_shape(const int64_t* sizes, int rank, Axis axis) {
  if (rank < 0 || rank > Shape::max_rank) throw_error(Exit::failed, "a shape of {} dimensions", rank);
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.sizes_[static_cast<size_t>(i)] = sizes[i];
  shape.rank_ = rank;
  shape.axis_ = axis;
  return shape;
}

Shape::Shape(std::initializer_list<int64_t> sizes, Axis axis) {
  *this = make_shape(sizes.begin(), static_cast<int>(sizes.size()), axis);
}

int64_t Shape::count() const {
  int64_t count = 1;
  for (int i = 0; i < rank_; ++i) count = checked_mul(count, (*this)[i]);
  return count;
}

Shape Shape::with_last(int64_t size) const {
  Shape shape = *this;
  shape.sizes_[static_cast<size_t>(rank_ - 1)] = size;
  return shape;
}

Shape Shape::with_lead(int64_t size, Axis axis) const {
  Shape shape = *this;
  shape.sizes_[0] = size;
  shape.axis_ = axis;
  return shape;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.rank(); ++i) {
    if (i > 0) text += ", ";
    if (i == 0 && shape.axis() != Axis::fixed) text += shape.axis() == Axis::token ? "token<=" : "wanted<=";
    text += fmt::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace consonant
