// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a block of a kernel on one thread of the host: each of the block's threads is a fiber that runs until it ends or
// waits for others. A fiber whose thread has ended takes the next thread, so a kernel that never waits needs one.
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "device/emu/block.hpp"
#include "device/emu/fiber.hpp"

namespace consonant::GPU_BUILD::gpu {

// What a device tells a block.
struct Rules {
  int64_t shared_bytes = 0;
  bool checks = true;   // of the order of accesses
  uint32_t launch = 0;  // tells launches apart
};

class BlockRunner final : public Block {
 public:
  BlockRunner();
  ~BlockRunner();

  // Runs the block of that number. Throws the first error of its threads.
  void run(const Work& work, int64_t number, const Rules& rules);

  void sync(Place place) override;
  uint32_t shuffle(uint32_t value, int source, Place place) override;

 private:
  enum class State : uint8_t { runs, syncs, shuffles, ended };
  struct Thread {
    Fiber waiting;
    State state = State::runs;
    Place place;
    uint32_t value = 0;
    int source = 0;
  };

  Thread& thread(int number) { return threads_[static_cast<size_t>(number)]; }
  Fiber serve();
  void run_thread(int number);
  Fiber next();
  void wait();
  void make_ready(int number);
  void fail(std::exception_ptr error);
  void abandon();
  bool together(int first, int count) const;
  std::string waiting() const;

  int count_ = 0, begun_ = 0, ended_ = 0, syncing_ = 0;
  bool failed_ = false, stopping_ = false;
  std::exception_ptr error_;
  std::vector<Thread> threads_;
  std::vector<int> shuffling_;  // lanes of each warp
  std::vector<int> ready_;      // a ring
  size_t first_ready_ = 0, count_ready_ = 0;
  Switch switch_;
  std::vector<Fiber> idle_;
  Fiber scheduler_;
};

// Blocks to run on, kept with their fibers by the process: making those takes longer than most kernels.
std::unique_ptr<BlockRunner> take_block();
void give_block(std::unique_ptr<BlockRunner> block);

}  // namespace consonant::GPU_BUILD::gpu
