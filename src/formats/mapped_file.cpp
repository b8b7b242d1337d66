// SPDX-License-Identifier: Apache-2.0
#include "formats/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <system_error>
#include <utility>

#include "base/error.hpp"

namespace consonant {

namespace {

std::string reason(int error) { return std::generic_category().message(error); }

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

bool file_exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a FIFO that nobody writes to would wait for ever.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) bad_input("{}: can't be opened: {}", path.string(), reason(errno));
  struct stat status {};
  if (::fstat(file.fd, &status) != 0) bad_input("{}: {}", path.string(), reason(errno));
  if (S_ISDIR(status.st_mode)) bad_input("{}: is a folder, not a file", path.string());
  if (!S_ISREG(status.st_mode)) bad_input("{}: is not a regular file", path.string());
  if (status.st_size == 0) bad_input("{}: is empty", path.string());

  std::shared_ptr<MappedFile> self(new MappedFile);
  self->name_ = path.string();
  const auto size = static_cast<size_t>(status.st_size);
  void* at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (at == MAP_FAILED && errno == ENOMEM)
    throw_error(Exit::memory, "{}: its {} bytes can't be mapped: {}", path.string(), size, reason(errno));
  if (at == MAP_FAILED) bad_input("{}: can't be mapped: {}", path.string(), reason(errno));
  self->bytes_ = {static_cast<const std::byte*>(at), size};
  self->mapped_ = true;
  return self;
}

std::shared_ptr<const MappedFile> MappedFile::of_bytes(std::string name, std::vector<std::byte> bytes) {
  std::shared_ptr<MappedFile> self(new MappedFile);
  self->name_ = std::move(name);
  self->held_ = std::move(bytes);
  self->bytes_ = self->held_;
  return self;
}

MappedFile::~MappedFile() {
  if (mapped_) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

std::span<const std::byte> MappedFile::range(int64_t offset, int64_t size, std::string_view what) const {
  if (offset < 0 || size < 0 || offset > this->size() || size > this->size() - offset)
    bad_input("{}: {} should be {} bytes at offset {}, but the file has {} bytes", name_, what, size, offset,
              this->size());
  return bytes_.subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

bool MappedFile::holds(std::span<const std::byte> part) const {
  const std::less_equal<> not_after;
  return not_after(bytes_.data(), part.data()) && not_after(part.data() + part.size(), bytes_.data() + bytes_.size());
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (!mapped_ || part.empty() || !holds(part)) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(part.data()), end = begin + part.size();
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  // Advice only: a system that refuses it keeps the pages, which is right too.
  if (first < last) (void)::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace consonant
