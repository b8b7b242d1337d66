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

PackedShape packed_shape_of(const WeightSource& source) { return packed_shape(source.type, source.sizes); }

// Accelerators have plain matrices row by row, as their kernels read them.
bool is_packed(const WeightSource& source, DeviceKind device) {
  return !is_vector(source) && device != DeviceKind::reference &&
         (!is_accelerator(device) || is_quantized(source.type));
}

int64_t plain_bytes(const WeightSource& source) {
  const int64_t columns = source.sizes.back();
  return checked_mul(row_bytes(source.type, columns), columns == 0 ? 0 : element_count(source.sizes) / columns);
}

int64_t device_bytes(const WeightSource& source, DeviceKind device) {
  const int64_t aligned = is_accelerator(device) ? 256 : 64;
  if (is_vector(source)) return round_up(element_count(source.sizes) * 4 + slack, aligned);
  if (device == DeviceKind::reference) return 0;
  const int64_t bytes = is_packed(source, device) ? packed_shape_of(source).bytes() : plain_bytes(source);
  return round_up(checked_add(bytes, slack), aligned);
}

constexpr int64_t staging_bytes = int64_t{32} << 20;

}  // namespace

int64_t WeightStore::bytes_needed(const std::vector<WeightSource>& sources, DeviceKind device) {
  int64_t bytes = 0;
  for (const WeightSource& source : sources) bytes = checked_add(bytes, device_bytes(source, device));
  return bytes;
}

WeightStore::WeightStore(const std::vector<WeightSource>& sources, const Target& device, ThreadPool& pool)
    : device_(device), bytes_(bytes_needed(sources, device.kind)) {
  Accelerator* accelerator = device.accelerator.get();
  std::byte* to = nullptr;
  if (accelerator && accelerator->info().unified) {
    unified_ = PinnedBuffer(bytes_, *accelerator);
    to = unified_.data();
  } else {
    buffer_ = Buffer(bytes_, accelerator);
    buffer_.prefer_huge_pages();
    to = buffer_.data();
    if (accelerator) staging_ = PinnedBuffer(staging_bytes, *accelerator);
  }
  for (const WeightSource& source : sources) {
    load(source, to, pool);
    to += device_bytes(source, device.kind);
  }
  staging_ = {};
}

WeightStore WeightStore::planned(const std::vector<WeightSource>& sources, DeviceKind device) {
  WeightStore store;
  store.bytes_ = bytes_needed(sources, device);
  for (const WeightSource& source : sources) store.views_.push_back(view_of(source, device, nullptr));
  return store;
}

View WeightStore::view_of(const WeightSource& source, DeviceKind device, std::byte* data) {
  const Shape shape = shape_of(source.sizes);
  const DType type = is_vector(source) ? DType::f32 : source.type;
  const Output out = dense(type, shape);
  return {data, type, shape, out.strides, is_packed(source, device) ? Layout::rows8 : Layout::plain};
}

// Bytes of the host to their place on the device; those in `staging_` must stay until the next call.
void WeightStore::send(std::byte* to, std::span<const std::byte> bytes) {
  const auto size = static_cast<int64_t>(bytes.size());
  if (staging_.data()) {
    device_.accelerator->upload(to, bytes.data(), size);
    device_.accelerator->wait();
  } else if (to != bytes.data()) {
    std::memcpy(to, bytes.data(), bytes.size());
  }
}

void WeightStore::load(const WeightSource& source, std::byte* to, ThreadPool& pool) {
  HostTensor tensor = source.load();
  const auto note = [&](std::byte* data) { views_.push_back(view_of(source, device_.kind, data)); };
  if (is_vector(source)) {
    check_finite_scales(source.name, source.type, tensor.bytes, tensor.columns());
    std::vector<float> numbers(static_cast<size_t>(element_count(source.sizes)));
    decode_row(source.type, tensor.bytes.data(), numbers.data(), element_count(source.sizes));
    const auto bytes = std::as_bytes(std::span(numbers));
    for (size_t at = 0; at < bytes.size(); at += static_cast<size_t>(staging_bytes)) {
      auto part = bytes.subspan(at, std::min(bytes.size() - at, static_cast<size_t>(staging_bytes)));
      if (staging_.data()) {
        std::copy(part.begin(), part.end(), staging_.data());
        part = {staging_.data(), part.size()};
      }
      send(to + at, part);
    }
    note(to);
  } else if (device_.kind == DeviceKind::reference) {
    check_finite_scales(source.name, source.type, tensor.bytes, tensor.columns());
    note(const_cast<std::byte*>(tensor.bytes.data()));
    kept_.push_back(std::move(tensor));
  } else {
    load_matrix(source, tensor, to, pool);
    note(to);
  }
}

// Groups of up to eight rows, packed or as they are; on their way to another memory, as many at a time as the staging
// has room for.
void WeightStore::load_matrix(const WeightSource& source, const HostTensor& tensor, std::byte* to, ThreadPool& pool) {
  const PackedShape packed = packed_shape_of(source);
  const bool repack = is_packed(source, device_.kind);
  const int64_t row = row_bytes(source.type, packed.k), group = repack ? packed.group_bytes : 8 * row;
  const int64_t per_chunk = std::max<int64_t>(1, (int64_t{256} << 10) / (8 * row + 1));
  if (staging_.data() && group > staging_.size()) staging_ = PinnedBuffer(group, *device_.accelerator);
  const auto place = [&](int64_t at) { return repack ? at * group : packed.first_row(at) * row; };
  const int64_t at_once = staging_.data() ? staging_.size() / std::max<int64_t>(group, 1) : packed.groups();
  for (int64_t begin = 0; begin < packed.groups(); begin += at_once) {
    const int64_t end = std::min(packed.groups(), begin + at_once);
    std::byte* target = staging_.data() ? staging_.data() : to + place(begin);
    pool.run(ceil_div(end - begin, per_chunk), [&](int64_t chunk, int) {
      const int64_t first = begin + chunk * per_chunk, last = std::min(end, first + per_chunk);
      const std::byte* from = tensor.bytes.data() + packed.first_row(first) * row;
      const auto bytes = static_cast<size_t>((packed.first_row(last) - packed.first_row(first)) * row);
      check_finite_scales(source.name, source.type, {from, bytes}, packed.k);
      if (repack)
        pack_groups(packed, tensor.bytes.data(), target - begin * group, first, last);
      else
        std::copy_n(from, bytes, target + (packed.first_row(first) - packed.first_row(begin)) * row);
      source.release({from, bytes});
    });
    const int64_t bytes = place(end) - place(begin);
    send(to + place(begin), {target, static_cast<size_t>(bytes)});
  }
}

}  // namespace consonant
