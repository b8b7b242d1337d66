// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "cli/fake_engine.hpp"

namespace consonant {
namespace {

// Signals go to any thread and at any time: before the wait too.
TEST(Interrupts, ACtrlCBeforeTheWaitForInputEndsIt) {
  Interrupts::install();
  Interrupts::forget();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    const Interrupts::Deferred deferred;
    raise(SIGINT);
    EXPECT_EQ(Interrupts::wait_for_input(ends[0]), SIGINT);
    Interrupts::forget();
    std::thread finger([] { raise(SIGINT); });
    EXPECT_EQ(Interrupts::wait_for_input(ends[0]), SIGINT);
    finger.join();
    Interrupts::forget();
    ASSERT_EQ(write(ends[1], "typed", 5), 5);
    EXPECT_EQ(Interrupts::wait_for_input(ends[0]), 0);
    raise(SIGINT);
    EXPECT_EQ(Interrupts::wait_for_input(ends[0]), SIGINT) << "what was typed has to wait";
    Interrupts::forget();
  }
  close(ends[0]), close(ends[1]);
  std::signal(SIGINT, SIG_DFL);
}

TEST(InterruptsDeathTest, TheSecondCtrlCLeaves) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        Interrupts::install();
        auto state = std::make_shared<testing_cli::FakeState>();
        testing_cli::FakeSession session(state);
        const Interrupts::Cancels cancels(session);
        raise(SIGINT);
        raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
  EXPECT_EXIT(
      {
        Interrupts::install();
        raise(SIGINT);
      },
      testing::ExitedWithCode(130), "");
}

}  // namespace
}  // namespace consonant
