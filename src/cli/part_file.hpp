// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace consonant {

// A download that isn't whole: NAME.part beside its target, with a note (NAME.part.json) of what it is the beginning
// of. One program at a time may hold it.
class PartFile {
 public:
  explicit PartFile(const std::filesystem::path& target);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  // What the note says: which URL, which version of it (an ETag or a date), how long it is.
  struct Note {
    std::string url, validator;
    int64_t size = -1;
  };
  Note note() const;
  void write_note(const Note& note) const;

  int64_t size() const { return size_; }
  bool append(std::string_view bytes) noexcept;  // false: see error()
  void clear();
  std::string error() const;  // of the last append
  const std::filesystem::path& path() const { return path_; }

  void commit();  // becomes the target
  void remove();

 private:
  std::filesystem::path target_, path_, note_path_;
  int fd_ = -1, errno_ = 0;
  int64_t size_ = 0;
};

}  // namespace consonant
