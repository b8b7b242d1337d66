// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.hpp"

namespace consonant {

// Why a generation ended: the public StopReason, value by value.
enum class Stop { end_token, stop_string, caller_limit, input_bound, context_full, deadline, cancelled };

// What bounds a generation. -1: that bound isn't there. A generation has one at least.
struct StopLimits {
  const std::atomic<bool>* cancelled = nullptr;  // set from another thread
  Deadline deadline;
  std::span<const int32_t> end_tokens;  // empty: none ends it
  int64_t max_tokens = -1;              // the caller's limit
  int64_t context = -1;                 // positions of the sequence, prompt and generated tokens together
  int64_t input_bound = -1;             // on generated tokens, from the length of the input
};

// Decides when a generation ends. The reasons are asked in one order: cancelled, deadline, end token, stop string,
// caller's limit, context full, bound from the input; the first that holds is the one that is reported.
class StopRules {
 public:
  StopRules(const StopLimits& limits, int64_t prompt_tokens);

  // Before a step: cancelled and the deadline, which a step can't outrun, and limits that leave no room for a token.
  std::optional<Stop> before_step(int64_t generated) const { return ask(generated, false, false); }

  // After `token`, the last of `generated` ones.
  std::optional<Stop> after(int32_t token, int64_t generated, bool stop_string) const {
    return ask(generated, is_end(token), stop_string);
  }

  bool is_end(int32_t token) const;

 private:
  std::optional<Stop> ask(int64_t generated, bool end_token, bool stop_string) const;

  StopLimits limits_;
  int64_t prompt_tokens_;
};

}  // namespace consonant
