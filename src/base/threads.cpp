// SPDX-License-Identifier: Apache-2.0
#include "base/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <system_error>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace consonant {

namespace {

// A serial stretch between two parallel ones takes a few microseconds; waking a sleeper takes tens.
constexpr double look_seconds = 40e-6;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Calls `ready` for a short while; whether it said true.
template <class F>
bool look(const F& ready) {
  const auto start = Clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      relax();
    }
  } while (seconds_since(start) < look_seconds);
  return false;
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) {
  if (threads < 1) bad_usage("{} threads", threads);
  try {
    workers_.reserve(static_cast<size_t>(threads - 1));
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { work_loop(i); });
  } catch (const std::system_error& error) {  // those that run already have to end before this does
    const size_t started = workers_.size() + 1;
    stop();
    throw_error(Exit::failed, "{} threads: the system gives no more than {}: {}", threads, started, error.what());
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  stop_ = true;
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

bool ThreadPool::take(uint32_t& epoch, int64_t& chunk) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  for (;;) {
    const auto job = static_cast<uint32_t>(ticket >> 32);
    const auto left = static_cast<uint32_t>(ticket);
    if (left == 0 || (epoch != 0 && job != epoch)) return false;
    if (ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel)) {
      epoch = job;
      chunk = chunks_ - left;
      return true;
    }
  }
}

void ThreadPool::run_chunk(int64_t chunk, int thread) {
  try {
    call_(fn_, chunk, thread);
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
  if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) pending_.notify_one();
}

void ThreadPool::work_loop(int thread) {
  while (!stop_) {
    const uint32_t seen = epoch_.load();
    int64_t chunk;
    uint32_t any = 0;
    if (look([&] { return stop_ || take(any, chunk); })) {
      if (stop_ && any == 0) return;
      run_chunk(chunk, thread);
    } else {
      epoch_.wait(seen);
    }
  }
}

void ThreadPool::run_erased(int64_t chunks, Call call, const void* fn) {
  if (workers_.empty() || chunks <= 1) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) call(fn, chunk, 0);
    return;
  }
  if (chunks > std::numeric_limits<uint32_t>::max()) throw_error(Exit::failed, "{} chunks of work", chunks);
  call_ = call, fn_ = fn, chunks_ = chunks;
  failed_ = false;
  pending_.store(static_cast<uint32_t>(chunks), std::memory_order_relaxed);
  uint32_t epoch = epoch_.load(std::memory_order_relaxed) + 1;
  if (epoch == 0) epoch = 1;  // 0 stands for any job
  ticket_.store(uint64_t{epoch} << 32 | static_cast<uint32_t>(chunks), std::memory_order_release);
  epoch_.store(epoch, std::memory_order_seq_cst);
  epoch_.notify_all();

  int64_t chunk;
  while (take(epoch, chunk)) run_chunk(chunk, 0);
  if (!look([&] { return pending_.load(std::memory_order_acquire) == 0; }))
    for (uint32_t left; (left = pending_.load(std::memory_order_acquire)) != 0;) pending_.wait(left);
  if (failed_) std::rethrow_exception(error_);
}

}  // namespace consonant
