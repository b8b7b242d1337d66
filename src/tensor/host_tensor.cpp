// SPDX-License-Identifier: Apache-2.0
#include "tensor/host_tensor.hpp"

#include <fmt/ranges.h>

#include "base/checked.hpp"
#include "tensor/convert.hpp"

namespace consonant {

std::string to_string(const Sizes& sizes) { return fmt::format("[{}]", fmt::join(sizes, ", ")); }

int64_t element_count(const Sizes& sizes) {
  int64_t count = 1;
  for (int64_t size : sizes) {
    if (size < 0) bad_input("negative size in {}", to_string(sizes));
    count = checked_mul(count, size);
  }
  return count;
}

HostTensor HostTensor::allocate(DType type, Sizes sizes) {
  const int64_t columns = sizes.empty() ? 1 : sizes.back();
  const int64_t rows = columns == 0 ? 0 : element_count(sizes) / columns;
  auto storage =
      std::make_shared<std::vector<std::byte>>(static_cast<size_t>(checked_mul(rows, row_bytes(type, columns))));
  return {type, std::move(sizes), *storage, storage};
}

std::span<std::byte> HostTensor::mutable_bytes() { return {const_cast<std::byte*>(bytes.data()), bytes.size()}; }

std::vector<float> HostTensor::to_floats() const {
  std::vector<float> out(static_cast<size_t>(count()));
  const int64_t stride = row_bytes(type, columns());
  for (int64_t r = 0; r < rows(); ++r)
    decode_row(type, bytes.data() + r * stride, out.data() + r * columns(), columns());
  return out;
}

}  // namespace consonant
