// SPDX-License-Identifier: Apache-2.0
#pragma once

// A block's shared memory.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace consonant::GPU_BUILD::gpu {

class SharedMemory;

// A variable in it.
struct SharedVariable {
  static constexpr const char* kind = "shared";
  const void* site = nullptr;
  const char* name = "";
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  SharedMemory* memory = nullptr;

  void read(uintptr_t, int) const {}
  void write(uintptr_t, int) const {}
};

class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void begin_block(int64_t dynamic, int64_t limit);
  // The variable declared at `site`, the same for all threads of a block.
  const SharedVariable* variable(const void* site, const char* name, int64_t bytes) {
    for (int i = 0; i < count_; ++i)
      if (variables_[static_cast<size_t>(i)].site == site) return &variables_[static_cast<size_t>(i)];
    return add(site, name, bytes);
  }
  const SharedVariable* dynamic() const { return &variables_[0]; }

 private:
  static constexpr int most_variables = 64;

  const SharedVariable* add(const void* site, const char* name, int64_t bytes);

  std::vector<std::byte> bytes_;
  std::vector<SharedVariable> variables_;
  int count_ = 0;
  int64_t used_ = 0, limit_ = 0;
};

}  // namespace consonant::GPU_BUILD::gpu
