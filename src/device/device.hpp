// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace consonant {

// Where a program runs. `reference` is the processor too, with the naive kernels that accumulate in double: the oracle.
// The accelerators are those of CUDA and HIP, and two that a processor emulates, with 32 and with 64 lanes a warp.
enum class DeviceKind : uint8_t { cpu, reference, cuda, hip, emu32, emu64 };

std::string_view name(DeviceKind device);
constexpr bool is_accelerator(DeviceKind device) { return device >= DeviceKind::cuda; }

// Zeroed host memory, aligned to pages and committed by the system only when touched. Memory failures are errors (8).
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(int64_t bytes);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  std::byte* data() const { return data_; }
  int64_t size() const { return size_; }

  // Asks for pages of megabytes where the system has them: for memory that will be filled soon, all of it.
  void prefer_huge_pages();

  // Gives the memory back to the system; the content is zero afterwards.
  void clear();

 private:
  std::byte* data_ = nullptr;
  int64_t size_ = 0;
};

}  // namespace consonant
