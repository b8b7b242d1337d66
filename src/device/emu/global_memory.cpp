// SPDX-License-Identifier: Apache-2.0
#include "device/emu/global_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/checked.hpp"
#include "device/emu/pointer.hpp"

namespace consonant::GPU_BUILD::gpu {

namespace {

// A launch (28 bits), a mask of the bytes (4), a block.
using Mark = uint64_t;
constexpr uint32_t many_blocks = 0xFFFFFFFF;

Mark mark(const Turn& turn, int mask) {
  return static_cast<Mark>(turn.launch) << 36 | static_cast<Mark>(mask) << 32 | turn.block;
}
uint32_t block_of(Mark m) { return static_cast<uint32_t>(m); }
bool same_launch(Mark a, Mark b) { return (a ^ b) >> 36 == 0; }
bool covers(Mark a, Mark b) { return (b & ~a & 0xF00000000) == 0; }
// Of two blocks of one launch, the same bytes.
bool clash(Mark a, Mark b) { return same_launch(a, b) && block_of(a) != block_of(b) && (a & b & 0xF00000000) != 0; }

struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<GlobalMemory>> released;
  std::map<const std::byte*, std::unique_ptr<GlobalMemory>> all;  // by where they begin
};

Registry& registry() {
  static Registry memory;
  return memory;
}

}  // namespace

// Four bytes: the last block that wrote them and a block that read them. Of two blocks that run at once, the first
// stores its mark before it looks for the other's, and so does the other: one of them sees both.
struct GlobalMemory::Cell {
  std::atomic<Mark> writer{0}, reader{0};
};

GlobalMemory::GlobalMemory(int64_t bytes)
    : bytes_(std::max<int64_t>(bytes, 1)),
      cells_(ceil_div(bytes, 4) * static_cast<int64_t>(sizeof(Cell))),
      size_(bytes) {}

void GlobalMemory::release() {
  const std::lock_guard lock(registry().mutex);
  const auto found = registry().all.find(begin());
  released_ = true;
  bytes_ = Buffer(), cells_ = Buffer();
  registry().released.push_back(std::move(found->second));
  registry().all.erase(found);
}

GlobalMemory& add_memory(int64_t bytes) {
  auto memory = std::make_unique<GlobalMemory>(bytes);
  const std::lock_guard lock(registry().mutex);
  auto& kept = registry().all[memory->begin()];
  kept = std::move(memory);
  return *kept;
}

GlobalMemory* find_memory(const std::byte* data, int64_t bytes) {
  const std::lock_guard lock(registry().mutex);
  auto found = registry().all.upper_bound(data);
  if (found == registry().all.begin()) return nullptr;
  GlobalMemory* const memory = (--found)->second.get();
  return memory->holds(data, bytes) ? memory : nullptr;
}

template <class F>
void GlobalMemory::each_cell(uintptr_t at, int bytes, const F& fn) const {
  const uintptr_t offset = at - reinterpret_cast<uintptr_t>(begin()), end = offset + static_cast<uintptr_t>(bytes);
  for (uintptr_t cell = offset / 4; cell * 4 < end; ++cell) {
    const uintptr_t from = cell * 4 < offset ? offset - cell * 4 : 0, to = end - cell * 4 < 4 ? end - cell * 4 : 4;
    fn(reinterpret_cast<Cell*>(cells_.data())[cell], mark(current->turn(), (1 << to) - (1 << from)));
  }
}

void GlobalMemory::note_write(uintptr_t at, int bytes) const {
  each_cell(at, bytes, [&](Cell& cell, Mark mine) {
    Mark old = cell.writer.load(std::memory_order_relaxed);
    const bool again = same_launch(old, mine) && block_of(old) == block_of(mine);
    if (!again || !covers(old, mine)) old = cell.writer.exchange(again ? old | mine : mine);
    if (clash(old, mine)) race("writes", "writes", block_of(old), at, bytes);
    const Mark read = cell.reader.load();
    if (clash(read, mine)) race("writes", "reads", block_of(read), at, bytes);
  });
}

// Once two blocks have read the same bytes, those are kept as read by many.
void GlobalMemory::note_read(uintptr_t at, int bytes) const {
  each_cell(at, bytes, [&](Cell& cell, Mark mine) {
    const Mark old = cell.reader.load(std::memory_order_relaxed);
    if (clash(old, mine)) {
      if (block_of(old) != many_blocks) cell.reader.store((old & mine) | many_blocks);
    } else if (!same_launch(old, mine) || (block_of(old) != block_of(mine) && block_of(old) != many_blocks)) {
      cell.reader.store(mine);
    } else if (block_of(old) == block_of(mine) && !covers(old, mine)) {
      cell.reader.store(old | mine);
    }
    const Mark written = cell.writer.load();
    if (clash(written, mine)) race("reads", "writes", block_of(written), at, bytes);
  });
}

void GlobalMemory::stale() const {
  throw_error(Exit::failed, "{}: uses memory of {} bytes that was released", current->where(), size_);
}

void GlobalMemory::race(const char* does, const char* other_does, uint32_t other, uintptr_t at, int bytes) const {
  const Grid& g = current->grid();
  const std::string who = other == many_blocks ? std::string("other blocks read")
                                               : fmt::format("block ({}, {}, {}) {}", other % g.x, other / g.x % g.y,
                                                             other / g.x / g.y, other_does);
  throw_error(Exit::failed, "{}: {} bytes {} to {} of an allocation, which {} too", current->where(), does,
              at - reinterpret_cast<uintptr_t>(begin()),
              at - reinterpret_cast<uintptr_t>(begin()) + static_cast<uintptr_t>(bytes) - 1, who);
}

void bad_access(uintptr_t at, int64_t bytes, int64_t alignment, uintptr_t begin, uintptr_t end, const char* name) {
  const std::string where = current ? current->where() : std::string("outside of a kernel");
  if (at == 0) throw_error(Exit::failed, "{}: a null pointer is used", where);
  const std::string what = element(name, begin, at, bytes);
  if (at % static_cast<uintptr_t>(alignment) != 0)
    throw_error(Exit::failed, "{}: touches {}, whose address isn't a multiple of {}", where, what, alignment);
  throw_error(Exit::failed, "{}: touches {}, which has {} bytes", where, what, end - begin);
}

}  // namespace consonant::GPU_BUILD::gpu
