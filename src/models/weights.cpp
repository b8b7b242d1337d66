// SPDX-License-Identifier: Apache-2.0
#include "models/weights.hpp"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "base/checked.hpp"

namespace consonant {

Weights::Weights(const ModelFile& file) : shared_(std::make_shared<Shared>(Shared{&file, {}, {}, {}, {}})) {
  for (const StoredTensor& tensor : file.tensors) shared_->stored.emplace(tensor.name, &tensor);
}

const StoredTensor* Weights::find(const std::string& name) const {
  const auto at = shared_->stored.find(name);
  return at == shared_->stored.end() ? nullptr : at->second;
}

std::vector<std::string> Weights::unused() const {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : shared_->file->tensors)
    if (!shared_->leaves.contains(tensor.name)) names.push_back(tensor.name);
  return names;
}

Weights Weights::layer(int64_t i) const {
  Weights layer = *this;
  layer.prefix_ += fmt::format("blk.{}.", i);
  return layer;
}

Weights Weights::under(std::string_view prefix) const {
  Weights part = *this;
  part.prefix_ += prefix;
  return part;
}

const StoredTensor& Weights::need(const std::string& name, const Sizes& sizes) const {
  const StoredTensor* stored = find(name);
  if (!stored) bad_input("{}: the tensor {} {} is missing", shared_->file->meta->source, name, to_string(sizes));
  if (stored->sizes != sizes)
    bad_input("{}: the tensor {} is {}, but the metadata makes it {}", shared_->file->meta->source, name,
              to_string(stored->sizes), to_string(sizes));
  return *stored;
}

Tensor Weights::get(const std::string& name, const Sizes& sizes) const {
  const StoredTensor* stored = &need(name, sizes);
  const auto known = shared_->leaves.find(name);
  if (known != shared_->leaves.end()) return known->second;
  if (!is_float(stored->type) && !is_quantized(stored->type))
    bad_input("{}: the tensor {} holds {}, not weights", shared_->file->meta->source, name,
              consonant::name(stored->type));
  return keep(*stored);
}

Tensor Weights::keep(const StoredTensor& stored) const {
  const Shape shape = make_shape(stored.sizes.data(), static_cast<int>(stored.sizes.size()), Axis::fixed);
  Tensor leaf = weight(stored.name, stored.type, shape, static_cast<int>(shared_->used.size()));
  shared_->used.push_back(&stored);
  shared_->leaves.emplace(stored.name, leaf);
  return leaf;
}

Tensor Weights::constant(const std::string& name, const Sizes& sizes, std::vector<float> numbers) const {
  if (static_cast<int64_t>(numbers.size()) != element_count(sizes))
    throw_error(Exit::failed, "{} numbers for the constant {} {}", numbers.size(), name, to_string(sizes));
  const auto kept = std::make_shared<std::vector<float>>(std::move(numbers));
  const std::span bytes(reinterpret_cast<const std::byte*>(kept->data()), kept->size() * sizeof(float));
  shared_->made.push_back({name, DType::f32, sizes, static_cast<int64_t>(bytes.size()), [=] {
                             return HostTensor{DType::f32, sizes, bytes, kept};
                           }});
  return keep(shared_->made.back());
}

Tensor Weights::flat(std::string_view name, const Sizes& sizes) const {
  const StoredTensor& stored = need(prefix_ + std::string(name), sizes);
  if (const auto known = shared_->leaves.find(stored.name); known != shared_->leaves.end()) return known->second;
  if (!is_float(stored.type))
    bad_input("{}: the tensor {} holds {}, should be plain numbers", shared_->file->meta->source, stored.name,
              consonant::name(stored.type));
  const Sizes all = {element_count(sizes)};
  shared_->made.push_back({stored.name, stored.type, all, stored.bytes, [load = stored.load, all] {
                             HostTensor tensor = load();
                             tensor.sizes = all;
                             return tensor;
                           }});
  return keep(shared_->made.back());
}

Tensor Weights::columns(std::string_view name, const Sizes& sizes, int64_t first, int64_t count) const {
  const StoredTensor& stored = need(fmt::format("{}{}.weight", prefix_, name), sizes);
  const std::string part = fmt::format("{}[{}:{}]", stored.name, first, first + count);
  if (const auto known = shared_->leaves.find(part); known != shared_->leaves.end()) return known->second;
  const int64_t block = info(stored.type).block;
  if ((!is_float(stored.type) && !is_quantized(stored.type)) || first % block != 0 || count % block != 0)
    bad_input("{}: the tensor {} holds {}, which can't be cut at column {}", shared_->file->meta->source, stored.name,
              consonant::name(stored.type), first % block != 0 ? first : count);
  const Sizes cut = {sizes[0], count};
  const int64_t row = row_bytes(stored.type, count), skipped = row_bytes(stored.type, first),
                whole = row_bytes(stored.type, sizes[1]);
  shared_->made.push_back({part, stored.type, cut, checked_mul(row, sizes[0]), [=, load = stored.load] {
                             const HostTensor all = load();
                             HostTensor out = HostTensor::allocate(all.type, cut);
                             for (int64_t i = 0; i < cut[0]; ++i)
                               std::memcpy(out.mutable_bytes().data() + i * row, all.bytes.data() + i * whole + skipped,
                                           static_cast<size_t>(row));
                             return out;
                           }});
  return keep(shared_->made.back());
}

Tensor Weights::named(std::string_view name, const Sizes& sizes) const {
  return get(prefix_ + std::string(name), sizes);
}

Tensor Weights::changed(std::string_view name, const Sizes& sizes, const Sizes& to, Change change) const {
  const StoredTensor& stored = need(prefix_ + std::string(name), sizes);
  if (const auto known = shared_->leaves.find(stored.name); known != shared_->leaves.end()) return known->second;
  if (!is_float(stored.type))
    bad_input("{}: the tensor {} holds {}, should be plain numbers", shared_->file->meta->source, stored.name,
              consonant::name(stored.type));
  const int64_t bytes = checked_mul(element_count(to), info(stored.type).block_bytes);
  shared_->made.push_back({stored.name, stored.type, to, bytes,
                           [load = stored.load, change = std::move(change)] { return change(load()); }});
  return keep(shared_->made.back());
}

Tensor Weights::derived(std::string_view name, const Sizes& sizes, std::string_view as, const Sizes& to,
                        Derive derive) const {
  const StoredTensor& stored = need(prefix_ + std::string(name), sizes);
  std::string made = prefix_ + std::string(as);
  if (const auto known = shared_->leaves.find(made); known != shared_->leaves.end()) return known->second;
  const int64_t bytes = checked_mul(element_count(to), int64_t{sizeof(float)});
  shared_->made.push_back(
      {std::move(made), DType::f32, to, bytes, [load = stored.load, to, derive = std::move(derive)] {
         const auto numbers = std::make_shared<const std::vector<float>>(derive(load().to_floats()));
         return HostTensor{DType::f32, to, std::as_bytes(std::span(*numbers)), numbers};
       }});
  return keep(shared_->made.back());
}

Tensor Weights::operator()(std::string_view name, const Sizes& sizes) const {
  return get(fmt::format("{}{}.weight", prefix_, name), sizes);
}

Tensor Weights::bias(std::string_view name, const Sizes& sizes) const {
  return get(fmt::format("{}{}.bias", prefix_, name), sizes);
}

bool Weights::has(std::string_view name) const { return find(fmt::format("{}{}.weight", prefix_, name)); }
bool Weights::has_bias(std::string_view name) const { return find(fmt::format("{}{}.bias", prefix_, name)); }

}  // namespace consonant
