// SPDX-License-Identifier: Apache-2.0
#include "runtime/weights.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "tensor/convert.hpp"
#include "tensor/packed.hpp"
#include "tensor/validate.hpp"

namespace consonant {

namespace {

constexpr int64_t slack = 64;  // vector loads may look past the end

bool is_vector(const WeightSource& source) { return source.sizes.size() < 2; }

Shape shape_of(const Sizes& sizes) {
  if (sizes.size() > Shape::max_rank) bad_input("a tensor of {} dimensions", sizes.size());
  return make_shape(sizes.data(), static_cast<int>(sizes.size()), Axis::fixed);
}

// Matrices of more dimensions are stacks of rows all the same.
PackedShape packed_shape_of(const WeightSource& source) {
  const int64_t columns = source.sizes.back();
  return packed_shape(source.type, columns == 0 ? 0 : element_count(source.sizes) / columns, columns);
}

int64_t device_bytes(const WeightSource& source, DeviceKind device) {
  if (is_vector(source)) return round_up(element_count(source.sizes) * 4 + slack, 64);
  return device == DeviceKind::reference ? 0 : round_up(packed_shape_of(source).bytes() + slack, 64);
}

View vector_view(const WeightSource& source, const HostTensor& tensor, std::byte* to) {
  const int64_t n = element_count(source.sizes);
  decode_row(source.type, tensor.bytes.data(), reinterpret_cast<float*>(to), n);
  const Output out = dense(DType::f32, shape_of(source.sizes));
  return {to, DType::f32, out.shape, out.strides, Layout::plain};
}

}  // namespace

int64_t WeightStore::bytes_needed(const std::vector<WeightSource>& sources, DeviceKind device) {
  int64_t bytes = 0;
  for (const WeightSource& source : sources) bytes = checked_add(bytes, device_bytes(source, device));
  return bytes;
}

WeightStore::WeightStore(const std::vector<WeightSource>& sources, DeviceKind device, ThreadPool& pool)
    : buffer_(bytes_needed(sources, device)), bytes_(buffer_.size()) {
  buffer_.prefer_huge_pages();
  int64_t offset = 0;
  for (const WeightSource& source : sources) {
    HostTensor tensor = source.load();
    std::byte* to = buffer_.data() + offset;
    offset += device_bytes(source, device);
    const Output out = dense(source.type, shape_of(source.sizes));
    if (is_vector(source)) {
      check_finite_scales(source.name, source.type, tensor.bytes, tensor.columns());
      views_.push_back(vector_view(source, tensor, to));
    } else if (device == DeviceKind::reference) {
      check_finite_scales(source.name, source.type, tensor.bytes, tensor.columns());
      views_.push_back(
          {const_cast<std::byte*>(tensor.bytes.data()), source.type, out.shape, out.strides, Layout::plain});
      kept_.push_back(std::move(tensor));
      continue;
    } else {
      const PackedShape packed = packed_shape_of(source);
      const int64_t row = row_bytes(source.type, packed.k),
                    per_chunk = std::max<int64_t>(1, (int64_t{256} << 10) / (8 * row + 1));
      pool.run(ceil_div(packed.groups(), per_chunk), [&](int64_t chunk, int) {
        const int64_t first = chunk * per_chunk, last = std::min(packed.groups(), first + per_chunk);
        const std::byte* from = tensor.bytes.data() + first * 8 * row;
        const int64_t rows = std::min(packed.rows, last * 8) - first * 8;
        check_finite_scales(source.name, source.type, {from, static_cast<size_t>(rows * row)}, packed.k);
        pack_groups(packed, tensor.bytes.data(), to, first, last);
        source.release({from, static_cast<size_t>(rows * row)});
      });
      views_.push_back({to, source.type, out.shape, out.strides, Layout::rows8});
    }
  }
}

}  // namespace consonant
