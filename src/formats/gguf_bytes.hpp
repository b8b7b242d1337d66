// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "formats/mapped_file.hpp"
#include "formats/meta.hpp"

namespace consonant::testing_gguf {

// GGUF written field by field, right or wrong as a test wants it.
class Bytes {
 public:
  template <class T>
  Bytes& number(T value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  Bytes& u32(uint32_t value) { return number(value); }
  Bytes& u64(uint64_t value) { return number(value); }
  Bytes& raw(std::string_view text) {
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
    return *this;
  }
  Bytes& string(std::string_view text) { return u64(text.size()).raw(text); }
  Bytes& zeros(size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  Bytes& header(uint64_t tensors, uint64_t entries, uint32_t version = 3) {
    return raw("GGUF").u32(version).u64(tensors).u64(entries);
  }
  Bytes& key(std::string_view key, MetaType type) { return string(key).u32(static_cast<uint32_t>(type)); }
  Bytes& entry(std::string_view k, uint32_t value) { return key(k, MetaType::u32).u32(value); }
  Bytes& entry(std::string_view k, std::string_view value) { return key(k, MetaType::string).string(value); }
  Bytes& tensor(std::string_view name, const std::vector<uint64_t>& dimensions, uint32_t type, uint64_t offset) {
    string(name).u32(static_cast<uint32_t>(dimensions.size()));
    for (const uint64_t d : dimensions) u64(d);
    return u32(type).u64(offset);
  }
  Bytes& align(size_t to = 32) { return zeros((to - bytes_.size() % to) % to); }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::shared_ptr<const MappedFile> file() const { return MappedFile::of_bytes("x.gguf", bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace consonant::testing_gguf
