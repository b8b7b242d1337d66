// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace consonant {

// What the leading dimension of a value counts when a step runs. A program is built for a capacity (the size in the
// shape); a step uses as many rows as its batch has.
enum class Axis : uint8_t {
  fixed,   // exactly the size in the shape
  token,   // tokens of the batch
  wanted,  // rows whose output the caller wants
};

// Sizes, slowest dimension first: [token, head, dim].
class Shape {
 public:
  static constexpr int max_rank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes, Axis axis = Axis::fixed);

  int rank() const { return rank_; }
  Axis axis() const { return axis_; }
  int64_t operator[](int i) const { return sizes_[static_cast<size_t>(i < 0 ? rank_ + i : i)]; }
  std::span<const int64_t> sizes() const { return {sizes_.data(), static_cast<size_t>(rank_)}; }
  int64_t last() const { return rank_ == 0 ? 1 : (*this)[-1]; }  // a scalar is a row of one
  int64_t count() const;
  int64_t rows() const { return last() == 0 ? 0 : count() / last(); }

  Shape with_last(int64_t size) const;  // the last size replaced
  Shape with_lead(int64_t size, Axis axis) const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, max_rank> sizes_{};
  int rank_ = 0;
  Axis axis_ = Axis::fixed;

  friend Shape make_shape(const int64_t* sizes, int rank, Axis axis);
};

Shape make_shape(const int64_t* sizes, int rank, Axis axis);
std::string to_string(const Shape& shape);  // "[token<=512, 9, 64]"

}  // namespace consonant
