// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace consonant {

// A file being written beside its target. `commit` gives it the target's name; without it nothing of the target
// changes. Where the file system can hold a file without a name, nothing stays behind even if the process is killed;
// elsewhere the file has a temporary name, which the destructor removes.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  void write_zeros(int64_t count);
  int64_t written() const { return written_; }

  // For a writer that seeks: the temporary file itself, with all that was written so far in it. Nobody may close it.
  int descriptor();

  void commit();

 private:
  void flush();

  std::filesystem::path target_, temporary_;
  std::vector<std::byte> pending_;
  int64_t written_ = 0;
  int fd_ = -1;
  bool named_ = false;  // there is a temporary file to be removed
};

}  // namespace consonant
