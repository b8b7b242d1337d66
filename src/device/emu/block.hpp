// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a block of a kernel on one thread of the host: each of the block's threads is a fiber that runs until it ends or
// waits for others. A fiber whose thread has ended takes the next thread, so a kernel that never waits needs one.
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "device/accelerator.hpp"
#include "device/emu/shared_memory.hpp"

namespace consonant::GPU_BUILD::gpu {

constexpr int lane_width = GPU_EMULATED;

struct Grid {
  int64_t x = 1, y = 1, z = 1;
};

// A launch of a kernel.
struct Work {
  std::string kernel;
  Grid grid;
  int threads = 0;
  int64_t dynamic_shared = 0;
  std::function<void()> body;  // of one thread
  Progress progress;
};

// Where in the source a thread waits.
struct Place {
  const char* file = nullptr;
  int line = 0;
};

class Block {
 public:
  Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  // Throws the first error of its threads.
  void run(const Work& work, const Grid& at, int64_t shared_limit);

  // For the thread that runs.
  int thread() const { return running_; }
  int threads() const { return count_; }
  const Grid& at() const { return at_; }
  const Grid& grid() const { return work_->grid; }
  void sync(Place place);
  // What the lane `source` gave as `value`.
  uint32_t shuffle(uint32_t value, int source, Place place);
  SharedMemory& shared() { return shared_; }
  // "kernel k, block (1, 0, 0), thread 3"
  std::string where() const;

 private:
  using Fiber = boost::context::fiber;
  enum class State : uint8_t { unstarted, runs, syncs, shuffles, ended };
  struct Thread {
    Fiber waiting;
    State state = State::unstarted;
    Place place;
    uint32_t value = 0;
    int source = 0;
  };

  Fiber make_fiber();
  void run_threads();
  void run_thread(int thread);
  void leave(Fiber& self);
  void switch_to(Fiber target, Fiber& self);
  void wait();
  void make_ready(int thread);
  void fail(std::exception_ptr error);
  void abandon();
  [[noreturn]] void diverged(const Thread& other, int other_thread, const char* what, Place place) const;
  std::string deadlock() const;

  const Work* work_ = nullptr;
  Grid at_;
  int count_ = 0, running_ = 0, next_ = 0, ended_ = 0, syncing_ = 0;
  bool failed_ = false;
  std::exception_ptr error_;
  std::vector<Thread> threads_;
  std::vector<int> shuffling_;  // lanes of each warp
  std::vector<int> ready_;      // a ring
  size_t first_ready_ = 0, count_ready_ = 0;
  boost::context::protected_fixedsize_stack stack_;
  std::vector<Fiber> idle_;
  Fiber scheduler_;
  Fiber* left_ = nullptr;  // where the fiber that was left is to be kept
  SharedMemory shared_;
};

// The one that this thread of the host runs.
extern constinit thread_local Block* current;

}  // namespace consonant::GPU_BUILD::gpu
