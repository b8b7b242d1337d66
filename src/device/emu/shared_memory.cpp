// SPDX-License-Identifier: Apache-2.0
#include "device/emu/shared_memory.hpp"

#include <algorithm>
#include <string>

#include "base/checked.hpp"
#include "device/emu/block.hpp"

namespace consonant::GPU_BUILD::gpu {

SharedMemory::SharedMemory(Turn& turn) : turn_(turn), variables_(most_variables) {}

void SharedMemory::begin_block(int64_t dynamic, int64_t limit) {
  limit_ = limit, used_ = round_up(dynamic, 16), count_ = 1;
  if (static_cast<int64_t>(bytes_.size()) < limit + 16) {
    bytes_.resize(static_cast<size_t>(limit + 16));
    cells_.resize(static_cast<size_t>(limit / 4));
  }
  if (turn_.now > 1u << 31) {  // long before it wraps
    std::fill(cells_.begin(), cells_.end(), SharedCell());
    turn_.now = 0;
  }
  turn_.block_begin = turn_.synced = ++turn_.now;
  turn_.warp_synced.fill(0);
  first_ = round_up(reinterpret_cast<intptr_t>(bytes_.data()), 16);
  std::byte* const first = reinterpret_cast<std::byte*>(first_);
  variables_[0] = {nullptr, "the dynamic memory", first, first + dynamic, this};
}

const SharedVariable* SharedMemory::add(const void* site, const char* name, int64_t bytes) {
  std::byte* const begin = variables_[0].begin + used_;
  used_ += round_up(bytes, 16);
  if (used_ > limit_)
    throw_error(Exit::failed, "{}: {} bytes of shared memory with those of {}, a block has {}", current->where(), used_,
                name, limit_);
  if (count_ == most_variables)
    throw_error(Exit::failed, "{}: more than {} shared variables", current->where(), most_variables - 1);
  variables_[static_cast<size_t>(count_)] = {site, name, begin, begin + bytes, this};
  return &variables_[static_cast<size_t>(count_++)];
}

template <class F>
void SharedMemory::each_cell(uintptr_t at, int bytes, const F& fn) {
  const uintptr_t offset = at - first_, end = offset + static_cast<uintptr_t>(bytes);
  for (uintptr_t cell = offset / 4; cell * 4 < end; ++cell) {
    const uintptr_t from = cell * 4 < offset ? offset - cell * 4 : 0, to = end - cell * 4 < 4 ? end - cell * 4 : 4;
    fn(cells_[cell], (1 << to) - (1 << from));
  }
}

void SharedMemory::note_read(const SharedVariable& variable, uintptr_t at, int bytes) {
  each_cell(at, bytes, [&](SharedCell& c, int mask) {
    if (c.write_time < turn_.block_begin || (c.written & mask) != mask) unwritten(variable, at, bytes);
    if ((c.write_mask & mask) && !ordered(c.write_time, c.writer))
      race("reads", "wrote", c.writer, variable, at, bytes);
    if (c.reader != turn_.thread || c.read_time != turn_.now || (c.read_mask & mask) != mask) note_reader(c, mask);
  });
}

void SharedMemory::note_write(const SharedVariable& variable, uintptr_t at, int bytes) {
  each_cell(at, bytes, [&](SharedCell& c, int mask) {
    if ((c.write_mask & mask) && !ordered(c.write_time, c.writer))
      race("writes", "wrote", c.writer, variable, at, bytes);
    if (c.read_time >= turn_.synced && (c.read_mask & mask)) {
      const bool same_warp = c.reader / lane_width == turn_.warp();
      const bool before = same_warp && c.read_time < turn_.warp_synced[static_cast<size_t>(turn_.warp())];
      if (c.read_by_warps || !(before || (c.reader == turn_.thread && !c.read_by_lanes)))
        race("writes", "read", c.reader, variable, at, bytes);
    }
    if (c.write_time < turn_.block_begin) c.written = 0;
    const bool again = c.writer == turn_.thread && c.write_time >= turn_.synced;
    c.write_mask = static_cast<uint8_t>(again ? c.write_mask | mask : mask);
    c.written = static_cast<uint8_t>(c.written | mask);
    c.writer = static_cast<uint16_t>(turn_.thread), c.write_time = turn_.now;
  });
}

// Of two readers in different warps, or in one with no shuffle between, either may be the one that a later writer must
// wait for. Where they read different bytes of a cell, only those that both did are known to have two readers.
void SharedMemory::note_reader(SharedCell& c, int mask) const {
  const bool fresh = c.read_time < turn_.synced || !(c.read_mask & mask);
  const bool same_warp = c.reader / lane_width == turn_.warp();
  const bool before =
      same_warp && !c.read_by_warps && c.read_time < turn_.warp_synced[static_cast<size_t>(turn_.warp())];
  if (fresh || before) {
    c.read_mask = static_cast<uint8_t>(mask);
    c.read_by_lanes = c.read_by_warps = false;
  } else if (c.reader == turn_.thread && !c.read_by_lanes && !c.read_by_warps) {
    c.read_mask = static_cast<uint8_t>(c.read_mask | mask);
  } else {
    c.read_mask = static_cast<uint8_t>(c.read_mask & mask);
    (same_warp ? c.read_by_lanes : c.read_by_warps) = true;
  }
  c.reader = static_cast<uint16_t>(turn_.thread), c.read_time = turn_.now;
}

void SharedMemory::unwritten(const SharedVariable& variable, uintptr_t at, int bytes) const {
  throw_error(Exit::failed, "{}: reads {}, which this block hasn't written", current->where(),
              element(variable.name, reinterpret_cast<uintptr_t>(variable.begin), at, bytes));
}

void SharedMemory::race(const char* does, const char* did, int other, const SharedVariable& variable, uintptr_t at,
                        int bytes) const {
  const std::string who = other == turn_.thread ? "other threads" : "thread " + std::to_string(other);
  throw_error(Exit::failed, "{}: {} {}, which {} {} with no sync() between", current->where(), does,
              element(variable.name, reinterpret_cast<uintptr_t>(variable.begin), at, bytes), who, did);
}

}  // namespace consonant::GPU_BUILD::gpu
