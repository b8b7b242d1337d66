// SPDX-License-Identifier: Apache-2.0
#include "decode/stop.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.hpp"

namespace consonant {
namespace {

const std::vector<int32_t> ends = {2, 7};

TEST(StopRules, ReasonsAreAskedInOneOrder) {
  std::atomic<bool> cancelled{true};
  StopLimits limits{&cancelled, Deadline::after(-1), ends, 3, 8, 3};
  const auto stop = [&](int32_t token, bool stop_string) { return StopRules(limits, 5).after(token, 3, stop_string); };
  EXPECT_EQ(stop(2, true), Stop::cancelled);
  cancelled = false;
  EXPECT_EQ(stop(2, true), Stop::deadline);
  limits.deadline = Deadline::after(1000);
  EXPECT_EQ(stop(2, true), Stop::end_token);
  EXPECT_EQ(stop(1, true), Stop::stop_string);
  EXPECT_EQ(stop(1, false), Stop::caller_limit);
  limits.max_tokens = -1;
  EXPECT_EQ(stop(1, false), Stop::context_full);
  limits.context = -1;
  EXPECT_EQ(stop(1, false), Stop::input_bound);
  limits.input_bound = 4;
  EXPECT_EQ(stop(1, false), std::nullopt);
}

TEST(StopRules, NoRoomIsSeenBeforeTheFirstStep) {
  EXPECT_EQ(StopRules({.max_tokens = 0}, 5).before_step(0), Stop::caller_limit);
  EXPECT_EQ(StopRules({.max_tokens = 1}, 5).before_step(0), std::nullopt);
}

TEST(StopRules, ContextHoldsPromptAndAnswer) {
  const StopRules rules({.context = 8}, 5);
  EXPECT_EQ(rules.after(1, 2, false), std::nullopt);
  EXPECT_EQ(rules.after(1, 3, false), Stop::context_full);
}

Exit exit_of(const StopLimits& limits, int64_t prompt) {
  try {
    StopRules rules(limits, prompt);
  } catch (const Error& e) {
    return e.exit();
  }
  return Exit::done;
}

TEST(StopRules, PromptsThatCannotBeContinuedAreBadInput) {
  EXPECT_EQ(exit_of({.context = 8}, 0), Exit::input);
  EXPECT_EQ(exit_of({.context = 8}, 8), Exit::input);
  EXPECT_EQ(exit_of({.context = 8}, 9), Exit::input);
  EXPECT_EQ(exit_of({.context = 8}, 7), Exit::done);
}

TEST(StopRules, AGenerationHasABound) { EXPECT_THROW(StopRules(StopLimits{}, 5), std::logic_error); }

}  // namespace
}  // namespace consonant
