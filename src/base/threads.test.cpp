// SPDX-License-Identifier: Apache-2.0
#include "base/threads.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONSONANT_SANITIZED 1
#endif

namespace consonant {
namespace {

// Address space that this process uses, in bytes.
rlim_t used_address_space() {
  std::ifstream file("/proc/self/statm");
  rlim_t pages = 0;
  file >> pages;
  return pages * static_cast<rlim_t>(getpagesize());
}

TEST(ThreadPoolDeathTest, RefusesMoreThreadsThanTheSystemGives) {
#ifdef CONSONANT_SANITIZED
  GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
#else
  const auto ask_for_too_many = [] {
    const rlim_t limit = used_address_space() + (rlim_t{256} << 20);  // stacks of some thirty threads
    const rlimit lowered{limit, limit};
    if (setrlimit(RLIMIT_AS, &lowered) != 0) _exit(1);
    try {
      ThreadPool pool(1000);
    } catch (const Error& error) {
      const bool named = std::string(error.what()).find("1000 threads") != std::string::npos;
      _exit(error.exit() == Exit::failed && named ? 42 : 2);
    }
    _exit(3);
  };
  EXPECT_EXIT(ask_for_too_many(), testing::ExitedWithCode(42), "");
#endif
}

TEST(Deadline, FarAwayIsNotPassed) {
  for (double seconds : {1e9, 1e12, 1e300, std::numeric_limits<double>::infinity()}) {
    const Deadline deadline = Deadline::after(seconds);
    EXPECT_TRUE(deadline.is_set());
    EXPECT_FALSE(deadline.passed()) << seconds;
    EXPECT_GT(deadline.left(), 9e8) << seconds;
  }
  EXPECT_TRUE(Deadline::after(1e-12).passed());
  EXPECT_FALSE(Deadline().passed());
}

TEST(ThreadPool, RunsEachChunkOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t chunks : {0, 1, 2, 7, 1000}) {
      std::vector<int> runs(static_cast<size_t>(chunks));
      pool.run(chunks, [&](int64_t chunk, int thread) {
        ASSERT_GE(thread, 0);
        ASSERT_LT(thread, threads);
        ++runs[static_cast<size_t>(chunk)];
      });
      for (int n : runs) EXPECT_EQ(n, 1);
    }
  }
}

TEST(ThreadPool, ManyJobsInARow) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(4);
  for (int job = 0; job < 20000; ++job)
    pool.run(5, [&](int64_t chunk, int thread) { sums[static_cast<size_t>(thread)] += chunk; });
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), 20000 * 10);
}

TEST(ThreadPool, WakesSleepers) {
  ThreadPool pool(2);
  for (int i = 0; i < 5; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> ran{0};
    pool.run(2, [&](int64_t, int) {
      ++ran;
      // Each chunk waits for the other: both threads must take part, or this would hang.
      while (ran < 2) std::this_thread::yield();
    });
    EXPECT_EQ(ran, 2);
  }
}

TEST(ThreadPool, ThrowsTheFirstErrorAfterTheOthersEnded) {
  ThreadPool pool(3);
  std::atomic<int> ran{0};
  const auto job = [&](int64_t chunk, int) {
    ++ran;
    if (chunk == 3) throw std::runtime_error("three");
  };
  EXPECT_THROW(pool.run(10, job), std::runtime_error);
  EXPECT_EQ(ran, 10);
  pool.run(10, [&](int64_t, int) { ++ran; });
  EXPECT_EQ(ran, 20);
}

}  // namespace
}  // namespace consonant
