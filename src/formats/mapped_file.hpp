// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace consonant {

// False also for what can't be looked at.
bool file_exists(const std::filesystem::path& path);

// A file's bytes, read-only: mapped, or (for tests and fuzzing) held in memory. Nothing is read before it is touched.
class MappedFile {
 public:
  // Bad input, with the path and the reason, if it can't be opened, is a folder or a device, or is empty.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  static std::shared_ptr<const MappedFile> of_bytes(std::string name, std::vector<std::byte> bytes);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }
  int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  const std::string& name() const { return name_; }

  // Bytes [offset, offset + size); bad input that names `what` if they don't lie within the file.
  std::span<const std::byte> range(int64_t offset, int64_t size, std::string_view what) const;

  // Whether `part` lies within the file's bytes.
  bool holds(std::span<const std::byte> part) const;

  // Lets the system drop the whole pages within `part`; reading them again brings them back. Nothing happens to bytes
  // that lie elsewhere or are held in memory.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile() = default;

  std::string name_;
  std::span<const std::byte> bytes_;
  std::vector<std::byte> held_;
  bool mapped_ = false;
};

}  // namespace consonant
