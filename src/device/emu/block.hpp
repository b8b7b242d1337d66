// SPDX-License-Identifier: Apache-2.0
#pragma once

// A block as its kernel sees it; device/emu/block_runner.hpp runs it.
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "device/accelerator.hpp"
#include "device/emu/shared_memory.hpp"

namespace consonant::GPU_BUILD::gpu {

struct Grid {
  int64_t x = 1, y = 1, z = 1;
};

// A launch of a kernel.
struct Work {
  std::string_view kernel;
  Grid grid;
  int threads = 0;
  int64_t dynamic_shared = 0;
  std::function<void()> body;  // of one thread
  uint32_t node = 0;           // that it belongs to
};

// Where in the source a thread waits.
struct Place {
  const char* file = nullptr;
  int line = 0;
};

class Block {
 public:
  Block() = default;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  const Turn& turn() const { return turn_; }
  int threads() const { return work_->threads; }
  const Grid& at() const { return at_; }
  const Grid& grid() const { return work_->grid; }
  SharedMemory& shared() { return shared_; }
  virtual void sync(Place place) = 0;
  // What the lane `source` gave as `value`.
  virtual uint32_t shuffle(uint32_t value, int source, Place place) = 0;

  // "kernel k, block (1, 0, 0), thread 3"
  std::string where() const;
  std::string where_block() const;

 protected:
  ~Block() = default;

  const Work* work_ = nullptr;
  Grid at_;
  Turn turn_;
  SharedMemory shared_{turn_};
};

// The one that this thread of the host runs.
extern constinit thread_local Block* current __attribute__((tls_model("initial-exec")));

// "element 3 of x (bytes 12 to 15)"
std::string element(const char* name, uintptr_t begin, uintptr_t at, int64_t bytes);

}  // namespace consonant::GPU_BUILD::gpu
