// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace consonant {

// Finds tokens that stand in running text as they are: control tokens ("<|im_end|>"), the unknown token, and those that
// the model's makers added (Gemma's runs of newlines). The leftmost match wins, and the longest among those.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);

  struct Match {
    size_t at, length;
    int32_t id;  // -1: none, and `at` is the end of the text
  };
  // The first match at or after `from`; without `parse_special` only tokens that were added count.
  Match find(std::string_view text, size_t from, bool parse_special) const;

 private:
  Match longest_at(std::string_view text, size_t at, bool parse_special) const;

  struct Entry {
    std::string_view text;
    int32_t id;
    bool always;  // matched whether or not special tokens are parsed
  };
  std::vector<Entry> entries_;         // by text
  std::array<uint32_t, 257> first_{};  // entries that start with a byte: first_[b] to first_[b + 1]
};

}  // namespace consonant
