// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

namespace consonant {

// Processors that this process may use.
int usable_cores();

// Runs numbered chunks of work on the caller's thread and `threads() - 1` workers. Chunks are handed out by a counter,
// so a worker that the system holds back costs one chunk's time at most: the others do the rest, and the caller never
// waits for a worker that took nothing. Workers look for new work for some microseconds, then sleep.
class ThreadPool {
 public:
  static constexpr int most = 1024;  // threads, that callers may ask for

  explicit ThreadPool(int threads);  // wrong usage for none; a failure if the system refuses so many
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls fn(chunk, thread) for each chunk in 0 ... chunks - 1, thread in 0 ... threads() - 1; returns when all are
  // done. The first exception of a chunk is thrown here, after the others have ended. Not reentrant; one caller at a
  // time.
  template <class F>
  void run(int64_t chunks, const F& fn) {
    run_erased(
        chunks, [](const void* f, int64_t chunk, int thread) { (*static_cast<const F*>(f))(chunk, thread); }, &fn);
  }

 private:
  using Call = void (*)(const void* fn, int64_t chunk, int thread);

  void stop();
  void run_erased(int64_t chunks, Call call, const void* fn);
  void work_loop(int thread);
  // Takes a chunk of the job numbered `epoch`, or of any if it is 0; false if none is left.
  bool take(uint32_t& epoch, int64_t& chunk);
  void run_chunk(int64_t chunk, int thread);

  // High half: number of the job. Low half: chunks not yet taken. A chunk is owned only by a successful exchange, so a
  // worker that was late for one job can't take part in the next one by mistake.
  std::atomic<uint64_t> ticket_{0};
  std::atomic<uint32_t> epoch_{0};    // the job's number once more, to sleep on
  std::atomic<uint32_t> pending_{0};  // chunks not yet done, to sleep on
  std::atomic<bool> stop_{false};
  // Written by the caller between jobs; read only by owners of a chunk.
  Call call_ = nullptr;
  const void* fn_ = nullptr;
  int64_t chunks_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::vector<std::thread> workers_;
};

}  // namespace consonant
