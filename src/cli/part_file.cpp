// SPDX-License-Identifier: Apache-2.0
#include "cli/part_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/atomic_file.hpp"
#include "base/error.hpp"
#include "formats/json.hpp"

namespace consonant {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view what) {
  throw_error(Exit::failed, "{}: {}: {}", path.string(), what, std::strerror(errno));
}

}  // namespace

PartFile::PartFile(const std::filesystem::path& target) : target_(target), path_(target), note_path_(target) {
  path_ += ".part";
  note_path_ += ".part.json";
  std::error_code error;
  if (std::filesystem::is_directory(target_, error))
    bad_usage("{}: is a folder, can't be written as a file", target_.string());
  if (target_.has_parent_path()) std::filesystem::create_directories(target_.parent_path(), error);
  if (error)
    throw_error(Exit::failed, "{}: can't be made a folder: {}", target_.parent_path().string(), error.message());
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(path_, "can't be written");
  struct stat facts {};
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0 || fstat(fd_, &facts) != 0) {
    const int reason = errno;
    close(fd_);
    if (reason == EWOULDBLOCK) throw_error(Exit::failed, "{}: is being fetched by another program", target_.string());
    errno = reason;
    fail(path_, "can't be locked");
  }
  size_ = facts.st_size;
}

PartFile::~PartFile() {
  if (fd_ >= 0) close(fd_);
}

PartFile::Note PartFile::note() const {
  std::ifstream stream(note_path_, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(stream), {});
  const Json json = Json::parse(text, nullptr, false);
  const auto word = [&](const char* key) {
    return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : "";
  };
  Note note{word("url"), word("validator"), -1};
  if (json.is_object() && json.contains("size") && json["size"].is_number_integer()) note.size = json["size"];
  return note;
}

void PartFile::write_note(const Note& note) const {
  AtomicFile file(note_path_);
  file.write(Json{{"url", note.url}, {"validator", note.validator}, {"size", note.size}}.dump() + "\n");
  file.commit();
}

bool PartFile::append(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      errno_ = errno;
      return false;
    }
    size_ += n;
    bytes.remove_prefix(size_t(n));
  }
  return true;
}

std::string PartFile::error() const { return std::strerror(errno_); }

void PartFile::clear() {
  if (ftruncate(fd_, 0) != 0) fail(path_, "can't be emptied");
  size_ = 0;
}

void PartFile::commit() {
  if (fsync(fd_) != 0) fail(path_, "can't be written");
  if (rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "can't be put in place");
  std::error_code ignored;  // a note without its part says nothing
  std::filesystem::remove(note_path_, ignored);
}

void PartFile::remove() {
  std::error_code ignored;  // they are only left-overs
  std::filesystem::remove(note_path_, ignored);
  std::filesystem::remove(path_, ignored);
}

}  // namespace consonant
