// SPDX-License-Identifier: Apache-2.0
#include "engine/stop_reason.hpp"

namespace consonant {

StopReason to_reason(Stop stop) {
  switch (stop) {
    case Stop::end_token:
      return StopReason::end_token;
    case Stop::stop_string:
      return StopReason::stop_string;
    case Stop::caller_limit:
      return StopReason::caller_limit;
    case Stop::input_bound:
      return StopReason::input_bound;
    case Stop::context_full:
      return StopReason::context_full;
    case Stop::deadline:
      return StopReason::deadline;
    case Stop::cancelled:
      return StopReason::cancelled;
  }
  return StopReason::cancelled;
}

// What would otherwise show after the prompt has been read, or not at all: a bound that doesn't bound.
void check(const GenerateOptions& options, int64_t vocabulary) {
  if (options.max_tokens < -1)
    bad_usage("max_tokens is {}, but has to be 0 or greater, or -1 (what the context leaves)", options.max_tokens);
  if (!(options.deadline >= 0))
    bad_usage("a deadline of {} seconds, but it has to be 0 (none) or greater", options.deadline);
  for (const auto& bias : options.sampling.logit_bias)
    if (bias.first < 0 || bias.first >= vocabulary)
      bad_usage("logit bias for token {}, but the model's tokens go from 0 to {}", bias.first, vocabulary - 1);
}

}  // namespace consonant
