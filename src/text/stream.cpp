// SPDX-License-Identifier: Apache-2.0
#include "text/stream.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the ill-formed part at the start of `text`: as many as could have begun a character, at least one.
size_t ill_formed(std::string_view text) {
  size_t n = 1;
  while (n < text.size() && n < 4 && utf8_length(text.substr(0, n + 1)) == -2) ++n;
  return n;
}

}  // namespace

std::string_view TextStream::push(int32_t id) {
  released_.clear();
  if (options_.skip_special && tokenizer_->is_special(id)) return released_;
  tokenizer_->append_bytes(id, waiting_);
  const std::string_view bytes = waiting_;
  size_t at = 0;
  while (at < bytes.size()) {
    const int length = utf8_length(bytes.substr(at));
    if (length == -2) break;  // a character that the end cuts
    if (length > 0) {
      released_.append(bytes.substr(at, static_cast<size_t>(length)));
      at += static_cast<size_t>(length);
    } else {
      released_.append(replacement);
      at += ill_formed(bytes.substr(at));
    }
  }
  waiting_.erase(0, at);
  return released_;
}

std::string_view TextStream::flush() {
  released_.assign(waiting_.empty() ? std::string_view() : replacement);
  waiting_.clear();
  return released_;
}

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)), met_(stops_.size(), 0) {
  for (const std::string& stop : stops_) {
    if (stop.empty()) bad_usage("a stop string is empty: it would stop every text at its start");
    if (!is_utf8(stop)) bad_usage("a stop string isn't UTF-8: '{}'", sanitize_utf8(stop));
    std::vector<uint32_t> border(stop.size() + 1, 0);
    for (size_t n = 1; n < stop.size(); ++n) {
      uint32_t k = border[n];
      while (k > 0 && stop[k] != stop[n]) k = border[k];
      border[n + 1] = stop[k] == stop[n] ? k + 1 : 0;
    }
    border_.push_back(std::move(border));
  }
}

std::string_view StopStrings::push(std::string_view text) {
  released_.clear();
  if (matched()) return released_;
  held_.append(text);
  const size_t start = held_.size() - text.size();
  for (size_t at = start; at < held_.size(); ++at) {
    for (size_t i = 0; i < stops_.size(); ++i) {
      const std::string& stop = stops_[i];
      uint32_t k = met_[i];
      while (k > 0 && stop[k] != held_[at]) k = border_[i][k];
      met_[i] = stop[k] == held_[at] ? k + 1 : 0;
      if (met_[i] == stop.size() && (!matched() || stop.size() > stops_[static_cast<size_t>(matched_)].size()))
        matched_ = static_cast<int>(i);
    }
    if (!matched()) continue;
    released_.assign(held_, 0, at + 1 - this->stop().size());
    held_.clear();
    return released_;
  }
  const size_t hold = met_.empty() ? 0 : *std::max_element(met_.begin(), met_.end());
  released_.assign(held_, 0, held_.size() - hold);
  held_.erase(0, held_.size() - hold);
  return released_;
}

std::string_view StopStrings::flush() {
  released_.swap(held_);
  held_.clear();
  std::fill(met_.begin(), met_.end(), 0);
  return released_;
}

}  // namespace consonant
