// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace consonant {

// Where a program runs. `reference` is the processor too, with the naive kernels that accumulate in double: the oracle.
// The accelerators are those of CUDA and HIP, and two that a processor emulates, with 32 and with 64 lanes a warp.
enum class DeviceKind : uint8_t { cpu, reference, cuda, hip, emu32, emu64 };

std::string_view name(DeviceKind device);
constexpr bool is_accelerator(DeviceKind device) { return device >= DeviceKind::cuda; }

class Accelerator;

// Zeroed memory. The host's is aligned to pages and committed by the system only when touched; an accelerator's, which
// must outlive the buffer, is committed at once, and only its kernels and copies reach it. Memory failures are errors
// (8).
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t bytes);
  Buffer(int64_t bytes, Accelerator* accelerator);  // null: the host
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }
  Accelerator* accelerator() const { return accelerator_; }

  // Asks for pages of megabytes where the system has them: for memory that will be filled soon, all of it.
  void prefer_huge_pages();

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  Accelerator* accelerator_ = nullptr;
};

// Host memory that an accelerator copies from and to by itself. It must outlive the buffer.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(int64_t bytes, Accelerator& accelerator);
  PinnedBuffer(PinnedBuffer&& other) noexcept { *this = std::move(other); }
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  ~PinnedBuffer();

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
  Accelerator* accelerator_ = nullptr;
};

}  // namespace consonant
