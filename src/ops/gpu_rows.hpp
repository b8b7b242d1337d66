// SPDX-License-Identifier: Apache-2.0
#pragma once

// A value as a kernel of an accelerator sees it.
#include "base/checked.hpp"
#include "device/gpu.hpp"
#include "ops/gpu_kernel.hpp"

namespace consonant::GPU_BUILD {

template <class T>
gpu::Ptr<T> pointer(const View& view) {
  return gpu::pointer<T>(view.data, extent(view));
}

// A view of up to three dimensions as rows: [outer, inner, cols], rows counted over the first two. Elements of a row
// are neighbours.
template <class T>
struct Rows {
  gpu::Ptr<T> data;
  int64_t rows = 0, cols = 0;
  int64_t inner = 1, outer_stride = 0, inner_stride = 0;  // in elements

  GPU_FN gpu::Ptr<T> row(int64_t r) const {
    return inner == 1 ? data + r * outer_stride : data + (r / inner * outer_stride + r % inner * inner_stride);
  }
};

template <class T>
Rows<T> rows_of(const View& v) {
  Rows<T> rows{pointer<T>(v), v.rows(), v.last()};
  const int rank = v.shape.rank();
  if (rank >= 3) {
    rows.inner = v.shape[rank - 2];
    rows.inner_stride = v.strides[static_cast<size_t>(rank - 2)];
    rows.outer_stride = v.strides[static_cast<size_t>(rank - 3)];
  } else if (rank == 2) {
    rows.outer_stride = v.strides[0];
  }
  return rows;
}

// Whether all rows begin at multiples of 16 bytes, of elements of four.
inline bool has_aligned_rows(const View& v) {
  if (reinterpret_cast<uintptr_t>(v.data) % 16 != 0) return false;
  for (int i = 0; i + 1 < v.shape.rank(); ++i)
    if (v.strides[static_cast<size_t>(i)] % 4 != 0) return false;
  return true;
}

// For kernels that treat each element by itself: a block has that many, whatever the length of the rows.
constexpr int elementwise_threads = 256, elementwise_count = 1024;

inline gpu::Grid elementwise_grid(int64_t rows, int64_t cols) { return {ceil_div(rows * cols, elementwise_count)}; }
inline gpu::Grid elementwise_grid(const View& y) { return elementwise_grid(y.rows(), y.last()); }

// Calls fn(row, column) for the elements of this block.
template <class F>
GPU_FN void for_elements(int64_t rows, int64_t cols, const F& fn) {
  const int64_t start = gpu::block() * elementwise_count, left = rows * cols - start;
  const int64_t row = start / cols, column = start - row * cols;
  // Past the first row the division is a short one.
  const auto width = static_cast<unsigned>(cols < elementwise_count ? cols : elementwise_count);
  for (int i = gpu::thread(); i < elementwise_count && i < left; i += elementwise_threads) {
    int64_t r = row, c = column + i;
    if (c >= cols) {
      const auto rest = static_cast<unsigned>(c - cols), more = rest / width;
      r += 1 + more, c = rest - more * width;
    }
    fn(r, c);
  }
}

}  // namespace consonant::GPU_BUILD
