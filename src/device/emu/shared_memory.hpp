// SPDX-License-Identifier: Apache-2.0
#pragma once

// A block's shared memory, and what its threads did to it: for each four bytes the last writer and the readers since.
// Time is a count that goes on at every sync() of the block and every shuffle of a warp; two accesses are ordered if
// such a one lies between them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace consonant::GPU_BUILD::gpu {

constexpr int lane_width = GPU_EMULATED;

// Who runs, and when.
struct Turn {
  int thread = 0;
  bool checks = true;           // of the order of accesses
  bool between_blocks = false;  // those of global memory, too
  uint32_t launch = 0, block = 0;
  uint32_t now = 0, block_begin = 0, synced = 0;  // `synced`: when the block was, last
  std::array<uint32_t, 1024 / lane_width> warp_synced{};

  int warp() const { return thread / lane_width; }
};

class SharedMemory;

// A variable in it.
struct SharedVariable {
  const void* site = nullptr;
  const char* name = "";
  std::byte* begin = nullptr;
  std::byte* end = nullptr;
  SharedMemory* memory = nullptr;

  inline void read(uintptr_t at, int bytes) const;
  inline void write(uintptr_t at, int bytes) const;
};

// Four bytes of it; masks have a bit a byte.
struct SharedCell {
  uint32_t write_time = 0, read_time = 0;
  uint16_t writer = 0, reader = 0;
  uint8_t written = 0;     // in this block
  uint8_t write_mask = 0;  // by `writer` since the last sync()
  uint8_t read_mask = 0;
  bool read_by_lanes : 1 = false;  // others of the reader's warp read it too, since the warp's last shuffle
  bool read_by_warps : 1 = false;  // other warps did, since the last sync()
};

class SharedMemory {
 public:
  explicit SharedMemory(Turn& turn);
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  void begin_block(int64_t dynamic, int64_t limit);
  // The variable declared at `site`, the same for all threads of a block.
  const SharedVariable* variable(const void* site, const char* name, int64_t bytes) {
    for (int i = 1; i < count_; ++i)
      if (variables_[static_cast<size_t>(i)].site == site) return &variables_[static_cast<size_t>(i)];
    return add(site, name, bytes);
  }
  const SharedVariable* dynamic() const { return &variables_[0]; }

  bool checks() const { return turn_.checks; }
  void note_read(const SharedVariable& variable, uintptr_t at, int bytes);
  void note_write(const SharedVariable& variable, uintptr_t at, int bytes);

 private:
  static constexpr int most_variables = 64;

  const SharedVariable* add(const void* site, const char* name, int64_t bytes);
  template <class F>
  void each_cell(uintptr_t at, int bytes, const F& fn);
  // Whether what `other` did at `time` came before what runs now, for certain.
  bool ordered(uint32_t time, int other) const {
    return time < turn_.synced || other == turn_.thread ||
           (other / lane_width == turn_.warp() && time < turn_.warp_synced[static_cast<size_t>(turn_.warp())]);
  }
  void note_reader(SharedCell& cell, int mask) const;
  [[noreturn]] void unwritten(const SharedVariable& variable, uintptr_t at, int bytes) const;
  [[noreturn]] void race(const char* does, const char* did, int other, const SharedVariable& variable, uintptr_t at,
                         int bytes) const;

  Turn& turn_;
  std::vector<std::byte> bytes_;
  std::vector<SharedCell> cells_;
  std::vector<SharedVariable> variables_;  // the dynamic memory is the first
  uintptr_t first_ = 0;
  int count_ = 0;
  int64_t used_ = 0, limit_ = 0;
};

inline void SharedVariable::read(uintptr_t at, int bytes) const {
  if (memory->checks()) memory->note_read(*this, at, bytes);
}
inline void SharedVariable::write(uintptr_t at, int bytes) const {
  if (memory->checks()) memory->note_write(*this, at, bytes);
}

}  // namespace consonant::GPU_BUILD::gpu
