// SPDX-License-Identifier: Apache-2.0
#include "base/atomic_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "base/error.hpp"

namespace consonant {

namespace {

constexpr size_t buffer_bytes = size_t{1} << 20;

[[noreturn]] void fail(const std::filesystem::path& path, std::string_view action) {
  throw_error(Exit::failed, "{}: {}: {}", path.string(), action, std::generic_category().message(errno));
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path target) : target_(std::move(target)) {
  if (target_.filename().empty()) bad_usage("'{}': is no name of a file to write", target_.string());
  std::error_code ignored;
  // A link is followed: what it points to is replaced, as with any other program that writes there.
  if (std::filesystem::is_symlink(target_, ignored) && std::filesystem::exists(target_, ignored))
    target_ = std::filesystem::canonical(target_);
  const auto status = std::filesystem::status(target_, ignored);
  if (std::filesystem::is_directory(status)) bad_usage("{}: is a folder, can't be written as a file", target_.string());
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    bad_usage("{}: is not a regular file, can't be replaced", target_.string());
  static std::atomic<int> counter{0};
  temporary_ = target_;
  temporary_.replace_filename(fmt::format(".consonant.{}.{}.part", ::getpid(), counter++));  // short enough for any
  const std::filesystem::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  fd_ = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  named_ = fd_ < 0;
  if (named_) fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(target_, "can't be written");
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (named_) ::unlink(temporary_.c_str());
}

void AtomicFile::flush() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t n = ::write(fd_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(target_, "can't be written");
    done += static_cast<size_t>(n);
  }
  pending_.clear();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  written_ += static_cast<int64_t>(bytes.size());
  while (!bytes.empty()) {
    const size_t n = std::min(bytes.size(), buffer_bytes - pending_.size());
    pending_.insert(pending_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    bytes = bytes.subspan(n);
    if (pending_.size() == buffer_bytes) flush();
  }
}

void AtomicFile::write_zeros(int64_t count) {
  const std::vector<std::byte> zeros(static_cast<size_t>(count));
  write(zeros);
}

int AtomicFile::descriptor() {
  flush();
  return fd_;
}

void AtomicFile::commit() {
  flush();
  if (::fsync(fd_) != 0) fail(target_, "can't be written");
  if (!named_) {
    const std::string self = fmt::format("/proc/self/fd/{}", fd_);
    if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) != 0)
      fail(target_, "can't be put in place");
    named_ = true;
  }
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail(target_, "can't be put in place");
  ::close(fd_);
  fd_ = -1;
}

}  // namespace consonant
