// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace consonant {

// Text of a generation as it comes, in whole characters: the bytes of a token that end inside a character wait for the
// next. Bytes that can't be part of one become U+FFFD, as the Unicode standard recommends, wherever tokens are cut.
class TextStream {
 public:
  // `tokenizer` must outlive the stream.
  explicit TextStream(const Tokenizer& tokenizer, DecodeOptions options = DecodeOptions{.skip_special = true})
      : tokenizer_(&tokenizer), options_(options) {}

  // The characters that are complete with this token; may be empty. Valid until the next call.
  std::string_view push(int32_t id);

  // What a character that never came to its end leaves: U+FFFD, or nothing.
  std::string_view flush();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string waiting_, released_;
};

// Looks for stop strings in text that arrives in pieces, and holds back what may yet turn out to begin one. How the
// text is cut changes nothing: the first stop string to be complete counts, of several at once the longest.
class StopStrings {
 public:
  // Refuses (bad usage) a string that is empty or isn't UTF-8.
  explicit StopStrings(std::vector<std::string> stops = {});

  // Text that surely precedes any stop string; valid until the next call. After a match: nothing.
  std::string_view push(std::string_view text);

  // At the end of the text: what was held back.
  std::string_view flush();

  bool matched() const { return matched_ >= 0; }
  int which() const { return matched_; }  // index of the stop string that was met, -1: none
  std::string_view stop() const { return matched() ? std::string_view(stops_[static_cast<size_t>(matched_)]) : ""; }

 private:
  std::vector<std::string> stops_;
  // Knuth, Morris, Pratt: border_[i][n] is the longest proper prefix of stop i that ends its first n bytes too.
  std::vector<std::vector<uint32_t>> border_;
  std::vector<uint32_t> met_;  // bytes of each stop string that the end of the text matches
  std::string held_, released_;
  int matched_ = -1;
};

}  // namespace consonant
