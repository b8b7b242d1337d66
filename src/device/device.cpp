// SPDX-License-Identifier: Apache-2.0
#include "device/device.hpp"

#include <sys/mman.h>

#include <utility>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "device/accelerator.hpp"

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

Buffer::Buffer(int64_t bytes, Accelerator* accelerator) : size_(bytes), accelerator_(accelerator) {
  if (bytes < 0) throw_error(Exit::failed, "a buffer of {} bytes", bytes);
  if (bytes > 0) data_ = accelerator ? accelerator->allocate(bytes) : map_zeroed(bytes);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      accelerator_(std::exchange(other.accelerator_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(accelerator_, other.accelerator_);
  return *this;
}

Buffer::~Buffer() {
  if (!data_) return;
  if (accelerator_)
    accelerator_->release(data_);
  else
    munmap(data_, static_cast<size_t>(size_));
}

void Buffer::prefer_huge_pages() {
#ifdef MADV_HUGEPAGE
  if (data_ && !accelerator_) madvise(data_, static_cast<size_t>(size_), MADV_HUGEPAGE);
#endif
}

PinnedBuffer::PinnedBuffer(int64_t bytes, Accelerator& accelerator)
    : data_(accelerator.allocate_pinned(bytes)), size_(bytes), accelerator_(&accelerator) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(accelerator_, other.accelerator_);
  return *this;
}

PinnedBuffer::~PinnedBuffer() {
  if (data_) accelerator_->release_pinned(data_);
}

}  // namespace consonant
