// SPDX-License-Identifier: Apache-2.0
#include "device/device.hpp"

#include <sys/mman.h>

#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace consonant {

std::string_view name(DeviceKind device) {
  constexpr std::string_view names[] = {"cpu", "reference", "cuda", "hip", "emu32", "emu64"};
  return names[static_cast<size_t>(device)];
}

namespace {

std::byte* map_zeroed(int64_t bytes) {
  void* p = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw_error(Exit::memory, "no memory: {} bytes", bytes);
  return static_cast<std::byte*>(p);
}

}  // namespace

Buffer::Buffer(int64_t bytes) : size_(bytes) {
  if (bytes < 0) throw_error(Exit::failed, "a buffer of {} bytes", bytes);
  if (bytes > 0) data_ = map_zeroed(bytes);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_) munmap(data_, static_cast<size_t>(size_));
}

void Buffer::prefer_huge_pages() {
#ifdef MADV_HUGEPAGE
  if (data_) madvise(data_, static_cast<size_t>(size_), MADV_HUGEPAGE);
#endif
}

void Buffer::clear() {
  if (data_) madvise(data_, static_cast<size_t>(size_), MADV_DONTNEED);
}

}  // namespace consonant
