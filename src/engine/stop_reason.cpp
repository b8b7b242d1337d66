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

}  // namespace consonant
