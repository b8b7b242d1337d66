// SPDX-License-Identifier: Apache-2.0
#include "tasks/repetition.hpp"

namespace consonant {

std::string letters_of(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c >= 'A' && c <= 'Z') {
      letters += static_cast<char>(c - 'A' + 'a');
    } else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || byte >= 0x80) {
      letters += c;
    }
  }
  return letters;
}

bool Repetition::again(std::span<const std::string> segments) const {
  std::string window, last = segment_;
  int run = run_;
  bool three = false;
  for (const std::string& text : segments) {
    std::string letters = letters_of(text);
    window += letters;
    if (letters.empty()) continue;
    run = letters == last ? run + 1 : 1;
    three |= run >= 3;
    last = std::move(letters);
  }
  return !window.empty() && (window == window_ || three);
}

void Repetition::add(std::span<const std::string> segments) {
  window_.clear();
  for (const std::string& text : segments) {
    std::string letters = letters_of(text);
    window_ += letters;
    if (letters.empty()) continue;
    run_ = letters == segment_ ? run_ + 1 : 1;
    segment_ = std::move(letters);
  }
}

void Repetition::reset() { *this = {}; }

}  // namespace consonant
