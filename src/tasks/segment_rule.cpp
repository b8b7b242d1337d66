// SPDX-License-Identifier: Apache-2.0
#include "tasks/segment_rule.hpp"

#include <algorithm>

namespace consonant {

WindowCut cut_window(std::span<const int32_t> tokens, const WhisperVocabulary& vocabulary, int64_t length, bool whole) {
  const int32_t zero = vocabulary.first_timestamp;
  const auto is_stamp = [&](size_t i) { return tokens[i] >= zero; };
  const size_t n = tokens.size();
  WindowCut cut;
  int64_t latest = 0;  // no segment starts before the end of the one before it
  const auto add = [&](size_t from, size_t to, int64_t start, int64_t end) {
    WindowSegment s;
    s.all_tokens.assign(tokens.begin() + static_cast<std::ptrdiff_t>(from),
                        tokens.begin() + static_cast<std::ptrdiff_t>(to));
    for (const int32_t id : s.all_tokens) {
      if (id < vocabulary.end) s.tokens.push_back(id);
    }
    s.start = std::clamp(start, latest, std::max(latest, length));
    s.end = std::clamp(end, s.start, std::max(s.start, length));
    latest = s.end;
    if (!s.tokens.empty()) cut.segments.push_back(std::move(s));
  };
  const bool single_end = n >= 2 && is_stamp(n - 1) && !is_stamp(n - 2);
  size_t done = 0;
  int64_t last_pair = 0;
  for (size_t i = 1; i <= n; ++i) {
    // A part ends between two timestamps, or with the text if a single one closes it.
    const bool pair = i < n && is_stamp(i - 1) && is_stamp(i);
    if (!pair && !(i == n && single_end && done > 0)) continue;
    if (is_stamp(done) && is_stamp(i - 1) && i - done >= 2) {
      add(done, i, tokens[done] - zero, tokens[i - 1] - zero);
    }
    last_pair = tokens[i - 1] - zero;
    done = i;
  }
  if (done == 0) {
    // No pair: one segment to the last timestamp if there is one that says more than the start.
    int64_t start = 0, end = length;
    if (n > 0 && is_stamp(0)) start = tokens[0] - zero;
    for (size_t i = 1; i < n; ++i) {
      if (is_stamp(i) && tokens[i] > zero) end = tokens[i] - zero;
    }
    add(0, n, start, end);
    cut.advance = length;
    return cut;
  }
  const bool rest = done < n;
  if (rest && whole) add(done, n, is_stamp(done) ? tokens[done] - zero : last_pair, length);
  cut.advance = rest && !whole ? std::min(last_pair, length) : length;
  return cut;
}

}  // namespace consonant
