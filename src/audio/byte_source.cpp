// SPDX-License-Identifier: Apache-2.0
#include "audio/byte_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "audio/descriptor.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

// What a stream keeps so that its start can be read again; real headers are far smaller.
constexpr size_t kept_limit = size_t{16} << 20;

std::string reason(int error) { return std::generic_category().message(error); }

class FileBytes : public ByteSource {
 public:
  FileBytes(int descriptor, bool owned, std::string name)
      : ByteSource(std::move(name)), descriptor_(descriptor), owned_(owned) {
    struct stat status;
    if (::fstat(descriptor_, &status) == 0) size_ = status.st_size;
  }
  ~FileBytes() override {
    if (owned_) ::close(descriptor_);
  }

  int64_t read(std::span<std::byte> to) override {
    size_t done = 0;
    while (done < to.size()) {
      const ssize_t n = ::pread(descriptor_, to.data() + done, to.size() - done, at_);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) bad_input("{}: can't be read at byte {}: {}", name(), at_, reason(errno));
      if (n == 0) break;
      done += static_cast<size_t>(n);
      at_ += n;
    }
    return static_cast<int64_t>(done);
  }
  int64_t size() const override { return size_; }
  int64_t position() const override { return at_; }
  bool seekable() const override { return true; }
  void seek(int64_t offset) override { at_ = offset; }
  void rewind() override { at_ = 0; }
  void forget() override {}
  int descriptor() const override { return descriptor_; }

 private:
  int descriptor_;
  bool owned_;
  int64_t size_ = 0, at_ = 0;
};

class MemoryBytes : public ByteSource {
 public:
  MemoryBytes(std::vector<std::byte> bytes, std::string name) : ByteSource(std::move(name)), bytes_(std::move(bytes)) {}

  int64_t read(std::span<std::byte> to) override {
    const int64_t n = std::clamp<int64_t>(size() - at_, 0, static_cast<int64_t>(to.size()));
    if (n > 0) std::memcpy(to.data(), bytes_.data() + at_, static_cast<size_t>(n));
    at_ += n;
    return n;
  }
  int64_t size() const override { return static_cast<int64_t>(bytes_.size()); }
  int64_t position() const override { return at_; }
  bool seekable() const override { return true; }
  void seek(int64_t offset) override { at_ = offset; }
  void rewind() override { at_ = 0; }
  void forget() override {}

 private:
  std::vector<std::byte> bytes_;
  int64_t at_ = 0;
};

class StreamBytes : public ByteSource {
 public:
  StreamBytes(std::function<int64_t(std::span<std::byte>)> read, std::string name)
      : ByteSource(std::move(name)), read_(std::move(read)) {}

  int64_t read(std::span<std::byte> to) override {
    size_t done = 0;
    if (at_ < static_cast<int64_t>(kept_.size())) {
      done = std::min(to.size(), kept_.size() - static_cast<size_t>(at_));
      std::memcpy(to.data(), kept_.data() + at_, done);
    }
    while (done < to.size()) {
      const int64_t n = read_(to.subspan(done));
      if (n == 0) break;
      if (keeping_) keep(to.subspan(done, static_cast<size_t>(n)));
      done += static_cast<size_t>(n);
    }
    at_ += static_cast<int64_t>(done);
    if (!keeping_ && !kept_.empty() && at_ >= static_cast<int64_t>(kept_.size())) kept_ = {};
    return static_cast<int64_t>(done);
  }
  int64_t size() const override { return -1; }
  int64_t position() const override { return at_; }
  bool seekable() const override { return false; }
  void seek(int64_t) override { throw_error(Exit::failed, "{}: a stream can't be read out of order", name()); }
  void rewind() override { at_ = 0; }
  void forget() override { keeping_ = false; }

 private:
  void keep(std::span<const std::byte> bytes) {
    if (kept_.size() + bytes.size() > kept_limit)
      bad_input("{}: no sound within the first {} MiB of the stream", name(), kept_limit >> 20);
    kept_.insert(kept_.end(), bytes.begin(), bytes.end());
  }

  std::function<int64_t(std::span<std::byte>)> read_;
  std::vector<std::byte> kept_;
  int64_t at_ = 0;
  bool keeping_ = true;
};

std::unique_ptr<ByteSource> stream_of(int descriptor, bool owned, std::string name) {
  auto closer = std::shared_ptr<void>(nullptr, [descriptor, owned](void*) {
    if (owned) ::close(descriptor);
  });
  auto read = [descriptor, name, closer](std::span<std::byte> to) -> int64_t {
    while (true) {
      const ssize_t n = ::read(descriptor, to.data(), to.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) bad_input("{}: can't be read: {}", name, reason(errno));
      return n;
    }
  };
  return bytes_of_stream(std::move(read), std::move(name));
}

std::unique_ptr<ByteSource> source_of(int descriptor, bool owned, std::string name) {
  struct stat status;
  if (::fstat(descriptor, &status) != 0) bad_input("{}: can't be read: {}", name, reason(errno));
  if (S_ISREG(status.st_mode) && ::lseek(descriptor, 0, SEEK_CUR) == 0)
    return std::make_unique<FileBytes>(descriptor, owned, std::move(name));
  return stream_of(descriptor, owned, std::move(name));
}

// On a disk rather than in memory, and gone when it is closed, however the program ends.
int nameless_file() {
  for (const char* folder : {"/var/tmp", "/tmp"}) {
#ifdef O_TMPFILE
    const int direct = ::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (direct >= 0) return direct;
#endif
    std::string path = std::string(folder) + "/consonant.XXXXXX";
    const int named = ::mkostemp(path.data(), O_CLOEXEC);
    if (named >= 0) {
      ::unlink(path.c_str());
      return named;
    }
  }
  return -1;
}

}  // namespace

void ByteSource::skip(int64_t bytes) {
  if (seekable()) return seek(bytes > INT64_MAX - position() ? INT64_MAX : position() + bytes);
  std::array<std::byte, 4096> sink;
  while (bytes > 0) {
    const int64_t n = read(std::span(sink).first(static_cast<size_t>(std::min<int64_t>(bytes, sink.size()))));
    if (n == 0) return;
    bytes -= n;
  }
}

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) bad_input("{}: can't be opened: {}", path, reason(errno));
  struct stat status;
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    bad_input("{}: is a folder, not a sound file", path);
  }
  return source_of(descriptor, true, path);
}

std::unique_ptr<ByteSource> bytes_of_descriptor(int descriptor, std::string name) {
  return source_of(descriptor, false, std::move(name));
}

std::unique_ptr<ByteSource> bytes_of_file(int descriptor, std::string name) {
  return std::make_unique<FileBytes>(descriptor, true, std::move(name));
}

std::unique_ptr<ByteSource> bytes_of_memory(std::vector<std::byte> bytes, std::string name) {
  return std::make_unique<MemoryBytes>(std::move(bytes), std::move(name));
}

std::unique_ptr<ByteSource> bytes_of_stream(std::function<int64_t(std::span<std::byte>)> read, std::string name) {
  return std::make_unique<StreamBytes>(std::move(read), std::move(name));
}

std::unique_ptr<ByteSource> spool(ByteSource& source) {
  Descriptor file(nameless_file());
  if (file.value() < 0)
    throw_error(Exit::failed, "{}: no temporary file can be made in /var/tmp or /tmp: {}", source.name(),
                reason(errno));
  source.forget();
  std::vector<std::byte> block(size_t{1} << 16);
  while (const int64_t n = source.read(block)) {
    for (int64_t done = 0; done < n;) {
      const ssize_t wrote = ::write(file.value(), block.data() + done, static_cast<size_t>(n - done));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0)
        throw_error(Exit::failed, "{}: can't be kept in a temporary file: {}", source.name(), reason(errno));
      done += wrote;
    }
  }
  if (::lseek(file.value(), 0, SEEK_SET) != 0) throw_error(Exit::failed, "{}: {}", source.name(), reason(errno));
  return bytes_of_file(file.release(), source.name());
}

}  // namespace consonant
