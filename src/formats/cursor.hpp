// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.hpp"
#include "formats/mapped_file.hpp"

namespace consonant {

// Reads a file's numbers one after another, little-endian. Past the end is bad input that names what was to stand
// there.
class Cursor {
 public:
  explicit Cursor(std::shared_ptr<const MappedFile> file) : file_(std::move(file)) {}

  template <class T>
  T number(std::string_view what) {
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, take(sizeof value, what).data(), sizeof value);
    return value;
  }
  std::string_view text(int64_t bytes, std::string_view what) {
    const auto part = take(bytes, what);
    return {reinterpret_cast<const char*>(part.data()), part.size()};
  }
  std::span<const std::byte> take(int64_t bytes, std::string_view what) {
    if (bytes < 0 || bytes > left())
      bad_input("{}: is cut short: {} should be {} bytes at offset {}, but the file has {}", file_->name(), what, bytes,
                at_, file_->size());
    const auto part = file_->range(at_, bytes, what);
    at_ += bytes;
    return part;
  }

  int64_t at() const { return at_; }
  int64_t left() const { return file_->size() - at_; }
  const MappedFile& file() const { return *file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  int64_t at_ = 0;
};

}  // namespace consonant
