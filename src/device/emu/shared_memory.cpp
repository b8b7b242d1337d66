// SPDX-License-Identifier: Apache-2.0
#include "device/emu/shared_memory.hpp"

#include "base/checked.hpp"
#include "device/emu/block.hpp"

namespace consonant::GPU_BUILD::gpu {

SharedMemory::SharedMemory() : variables_(most_variables) {}

void SharedMemory::begin_block(int64_t dynamic, int64_t limit) {
  limit_ = limit, used_ = round_up(dynamic, 16), count_ = 1;
  if (static_cast<int64_t>(bytes_.size()) < limit + 16) bytes_.resize(static_cast<size_t>(limit + 16));
  std::byte* const first = bytes_.data() + (16 - reinterpret_cast<uintptr_t>(bytes_.data()) % 16) % 16;
  variables_[0] = {nullptr, "dynamic shared memory", first, first + dynamic, this};
}

const SharedVariable* SharedMemory::add(const void* site, const char* name, int64_t bytes) {
  std::byte* const begin = variables_[0].begin + used_;
  used_ += round_up(bytes, 16);
  if (used_ > limit_)
    throw_error(Exit::failed, "{}: {} bytes of shared memory with {}, a block has {}", current->where(), used_, name,
                limit_);
  if (count_ == most_variables)
    throw_error(Exit::failed, "{}: more than {} shared variables", current->where(), most_variables);
  variables_[static_cast<size_t>(count_)] = {site, name, begin, begin + bytes, this};
  return &variables_[static_cast<size_t>(count_++)];
}

}  // namespace consonant::GPU_BUILD::gpu
