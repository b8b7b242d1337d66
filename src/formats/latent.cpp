// SPDX-License-Identifier: Apache-2.0
#include "formats/latent.hpp"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "tensor/convert.hpp"

namespace consonant {

namespace {

// Of one head, as attn_kv_b has them: `keys` rows, then `values` rows.
struct Heads {
  int64_t heads, keys, values, latent;

  int64_t rows() const { return keys + values; }
};

Heads heads_of(const Meta& meta, const StoredTensor& tensor) {
  const auto key = [](std::string_view name) { return fmt::format("deepseek2.{}", name); };
  const auto length = [&](std::string_view name) {
    const std::string of_a_head = key(fmt::format("attention.{}_length_mla", name));
    return meta.integer(meta.has(of_a_head) ? of_a_head : key(fmt::format("attention.{}_length", name)));
  };
  constexpr int64_t most = int64_t{1} << 24;
  Heads h{meta.integer(key("attention.head_count")), length("key") - meta.integer(key("rope.dimension_count")),
          length("value"), tensor.sizes.back()};
  for (const int64_t n : {h.heads, h.keys, h.values})
    if (n < 1 || n > most) bad_input("{}: a size of {} for {}", meta.source, n, tensor.name);
  if (tensor.sizes != Sizes{h.heads * h.rows(), h.latent})
    bad_input("{}: the tensor {} is {}, but {} heads of {} and {} ({}, {}, less {}) make {} rows", meta.source,
              tensor.name, to_string(tensor.sizes), h.heads, h.keys, h.values, key("attention.key_length_mla"),
              key("attention.value_length_mla"), key("rope.dimension_count"), h.heads * h.rows());
  return h;
}

void copy_in(HostTensor& to, int64_t at, const std::byte* from, int64_t bytes) {
  std::memcpy(to.mutable_bytes().data() + at, from, static_cast<size_t>(bytes));
}

HostTensor values_of(const HostTensor& both, const Heads& h) {
  HostTensor out = HostTensor::allocate(both.type, {h.heads, h.values, h.latent});
  const int64_t row = row_bytes(both.type, h.latent);
  for (int64_t head = 0; head < h.heads; ++head)
    copy_in(out, head * h.values * row, both.bytes.data() + (head * h.rows() + h.keys) * row, h.values * row);
  return out;
}

HostTensor transposed_keys_of(const HostTensor& both, const Heads& h, DType type) {
  HostTensor out = HostTensor::allocate(type, {h.heads, h.latent, h.keys});
  const int64_t row = row_bytes(both.type, h.latent), turned = row_bytes(type, h.keys);
  std::vector<float> keys(static_cast<size_t>(h.keys * h.latent)), line(static_cast<size_t>(h.keys));
  for (int64_t head = 0; head < h.heads; ++head) {
    for (int64_t i = 0; i < h.keys; ++i)
      decode_row(both.type, both.bytes.data() + (head * h.rows() + i) * row, keys.data() + i * h.latent, h.latent);
    for (int64_t l = 0; l < h.latent; ++l) {
      for (int64_t i = 0; i < h.keys; ++i) line[static_cast<size_t>(i)] = keys[static_cast<size_t>(i * h.latent + l)];
      encode_row(type, line.data(), out.mutable_bytes().data() + (head * h.latent + l) * turned, h.keys);
    }
  }
  return out;
}

std::string named(const std::string& both, std::string_view part) {
  std::string name = both;
  return name.replace(name.rfind("attn_kv_b"), std::string_view("attn_kv_b").size(), part);
}

int64_t bytes_of(DType type, const Sizes& sizes) {
  return checked_mul(row_bytes(type, sizes.back()), checked_mul(sizes[0], sizes[1]));
}

}  // namespace

void split_latent_projections(ModelFile& file) {
  if (file.meta->string("general.architecture", "") != "deepseek2") return;
  std::vector<StoredTensor> tensors;
  for (StoredTensor& t : file.tensors) {
    if (!t.name.ends_with(".attn_kv_b.weight") || t.sizes.size() != 2) {
      tensors.push_back(std::move(t));
      continue;
    }
    const Heads h = heads_of(*file.meta, t);
    const DType turned = is_quantized(t.type) ? DType::f16 : t.type;
    const Sizes k_b = {h.heads, h.latent, h.keys}, v_b = {h.heads, h.values, h.latent};
    tensors.push_back({named(t.name, "attn_k_b"), turned, k_b, bytes_of(turned, k_b),
                       [load = t.load, h, turned] { return transposed_keys_of(load(), h, turned); }});
    tensors.push_back({named(t.name, "attn_v_b"), t.type, v_b, bytes_of(t.type, v_b),
                       [load = t.load, h] { return values_of(load(), h); }});
  }
  file.tensors = std::move(tensors);
}

}  // namespace consonant
