// SPDX-License-Identifier: Apache-2.0
#pragma once

// The memory of emulated devices.
#include <cstddef>
#include <cstdint>

namespace consonant::GPU_BUILD::gpu {

// One allocation.
struct GlobalMemory {
  static constexpr const char* kind = "global";
  std::byte* begin = nullptr;
  std::byte* end = nullptr;

  void read(uintptr_t, int) const {}
  void write(uintptr_t, int) const {}
};

// The allocation that holds `bytes` at `data`; an error if none does.
const GlobalMemory* find_memory(const std::byte* data, int64_t bytes);

}  // namespace consonant::GPU_BUILD::gpu
