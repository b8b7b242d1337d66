// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of emulated devices, and what the blocks of a launch did to it: for each four bytes the last block that
// wrote them and a block that read them. Blocks run in any order, so none may touch what another writes.
#include <cstddef>
#include <cstdint>

#include "device/device.hpp"
#include "device/emu/block.hpp"

namespace consonant::GPU_BUILD::gpu {

// One allocation.
class GlobalMemory {
 public:
  static constexpr const char* name = "the tensor";

  explicit GlobalMemory(int64_t bytes);

  std::byte* begin() const { return bytes_.data(); }
  int64_t size() const { return size_; }
  bool holds(const std::byte* data, int64_t bytes) const {
    return data >= begin() && bytes <= size_ && data - begin() <= size_ - bytes;
  }
  // Its memory goes back to the system; pointers into it tell that they are stale.
  void release();

  void read(uintptr_t at, int bytes) const {
    if (released_) stale();
    if (current->turn().between_blocks) note_read(at, bytes);
  }
  void write(uintptr_t at, int bytes) const {
    if (released_) stale();
    if (current->turn().between_blocks) note_write(at, bytes);
  }

 private:
  struct Cell;

  template <class F>
  void each_cell(uintptr_t at, int bytes, const F& fn) const;
  void note_read(uintptr_t at, int bytes) const;
  void note_write(uintptr_t at, int bytes) const;
  [[noreturn]] void stale() const;
  [[noreturn]] void race(const char* does, const char* other_does, uint32_t other, uintptr_t at, int bytes) const;

  Buffer bytes_, cells_;
  int64_t size_ = 0;
  bool released_ = false;
};

// Every allocation of this build's devices. The records stay when their memory is released.
GlobalMemory& add_memory(int64_t bytes);
// The allocation that holds `bytes` at `data`; null if none does.
GlobalMemory* find_memory(const std::byte* data, int64_t bytes);

}  // namespace consonant::GPU_BUILD::gpu
