// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace consonant {

// Sizes of a tensor, slowest dimension first, rows in the last: a weight of a linear layer is [outputs, inputs]
// (GGUF lists the same sizes fastest first).
using Sizes = std::vector<int64_t>;

std::string to_string(const Sizes& sizes);  // "[576, 1536]"

// Product of the sizes; bad input on overflow or a negative size.
int64_t element_count(const Sizes& sizes);

// A dense tensor in the host's memory: its bytes belong to `owner` (a mapped file, a vector, ...), which it keeps
// alive.
struct HostTensor {
  DType type = DType::f32;
  Sizes sizes;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  static HostTensor allocate(DType type, Sizes sizes);  // zeroed; write through `mutable_bytes`

  int64_t columns() const { return sizes.empty() ? 1 : sizes.back(); }
  int64_t rows() const { return columns() == 0 ? 0 : element_count(sizes) / columns(); }
  int64_t count() const { return element_count(sizes); }

  template <class T>
  std::span<const T> as() const {  // the caller answers for the type; data of a mapped file may be unaligned to T
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  std::span<std::byte> mutable_bytes();  // only for tensors made by `allocate`

  // Every element as float, whatever the type (decoded if quantised).
  std::vector<float> to_floats() const;
};

}  // namespace consonant
