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

// A view of up to three dimensions as rows: [outer, inner, cols], rows counted over the first two. Elements of a row are
// neighbours.
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

// For kernels that treat each element by itself: a block has `elementwise_columns` neighbours of one row.
constexpr int elementwise_threads = 256, elementwise_columns = 1024;

inline gpu::Grid elementwise_grid(const View& y) { return {y.rows() * ceil_div(y.last(), elementwise_columns)}; }

// Calls fn(row, column) for the elements of this block.
template <class F>
GPU_FN void for_elements(int64_t cols, const F& fn) {
  const int64_t parts = (cols + elementwise_columns - 1) / elementwise_columns;
  const int64_t row = gpu::block() / parts, first = gpu::block() % parts * elementwise_columns;
  for (int64_t i = first + gpu::thread(); i < first + elementwise_columns && i < cols; i += elementwise_threads) fn(row, i);
}

}  // namespace consonant::GPU_BUILD
