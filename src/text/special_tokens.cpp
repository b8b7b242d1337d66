// SPDX-License-Identifier: Apache-2.0
#include "text/special_tokens.hpp"

#include <algorithm>

namespace consonant {

namespace {

uint8_t byte_of(std::string_view text, size_t at) { return static_cast<uint8_t>(text[at]); }

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) {
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    const bool always = type == TokenType::user_defined;
    if (!always && type != TokenType::control && type != TokenType::unknown) continue;
    if (!vocabulary.text(id).empty()) entries_.push_back({vocabulary.text(id), id, always});
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  for (const Entry& entry : entries_) ++first_[byte_of(entry.text, 0) + 1u];
  for (size_t b = 0; b < 256; ++b) first_[b + 1] += first_[b];
}

// `entries_[low, high)` are those that begin as the text does; each further byte narrows them.
SpecialTokens::Match SpecialTokens::longest_at(std::string_view text, size_t at, bool parse_special) const {
  Match best{at, 0, -1};
  const uint8_t first = byte_of(text, at);
  auto low = entries_.begin() + first_[first], high = entries_.begin() + first_[first + 1u];
  for (size_t length = 1; low != high; ++length) {
    // In order, a text that ends here comes before those that go on.
    if (low->text.size() == length) {
      if (parse_special || low->always) best = {at, length, low->id};
      ++low;
    }
    if (at + length >= text.size()) break;
    const uint8_t next = byte_of(text, at + length);
    low = std::partition_point(low, high, [&](const Entry& e) { return byte_of(e.text, length) < next; });
    high = std::partition_point(low, high, [&](const Entry& e) { return byte_of(e.text, length) == next; });
  }
  return best;
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, size_t from, bool parse_special) const {
  for (size_t at = from; at < text.size(); ++at) {
    const uint8_t first = byte_of(text, at);
    if (first_[first] == first_[first + 1u]) continue;
    const Match match = longest_at(text, at, parse_special);
    if (match.id >= 0) return match;
  }
  return {text.size(), 0, -1};
}

}  // namespace consonant
