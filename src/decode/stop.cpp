// SPDX-License-Identifier: Apache-2.0
#include "decode/stop.hpp"

#include <algorithm>
#include <stdexcept>

#include "base/error.hpp"

namespace consonant {

StopRules::StopRules(const StopLimits& limits, int64_t prompt_tokens) : limits_(limits), prompt_tokens_(prompt_tokens) {
  if (limits.max_tokens < 0 && limits.context < 0 && limits.input_bound < 0)
    throw std::logic_error("a generation without a bound");
  if (prompt_tokens == 0) bad_input("the prompt is empty: there is nothing to continue from");
  if (limits.context >= 0 && prompt_tokens >= limits.context)
    bad_input("the prompt has {} tokens, which leaves no room in a context of {}", prompt_tokens, limits.context);
}

bool StopRules::is_end(int32_t token) const {
  return std::find(limits_.end_tokens.begin(), limits_.end_tokens.end(), token) != limits_.end_tokens.end();
}

std::optional<Stop> StopRules::ask(int64_t generated, bool end_token, bool stop_string) const {
  const auto reached = [](int64_t bound, int64_t n) { return bound >= 0 && n >= bound; };
  if (limits_.cancelled && limits_.cancelled->load(std::memory_order_relaxed)) return Stop::cancelled;
  if (limits_.deadline.passed()) return Stop::deadline;
  if (end_token) return Stop::end_token;
  if (stop_string) return Stop::stop_string;
  if (reached(limits_.max_tokens, generated)) return Stop::caller_limit;
  if (reached(limits_.context, prompt_tokens_ + generated)) return Stop::context_full;
  if (reached(limits_.input_bound, generated)) return Stop::input_bound;
  return std::nullopt;
}

}  // namespace consonant
