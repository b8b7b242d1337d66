// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace consonant {

// Remembers what a transcript said last, to notice that it says the same again.
class Repetition {
 public:
  // The whole text is that of the window before, or the same segment came three times in a row by now.
  bool again(std::span<const std::string> segments) const;

  void add(std::span<const std::string> segments);
  void reset();

 private:
  std::string window_;   // letters of the last window
  std::string segment_;  // of the last segment
  int run_ = 0;          // how often it came in a row
};

// Letters and digits of a text, small ones: what is compared.
std::string letters_of(std::string_view text);

}  // namespace consonant
