// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace consonant {

// A part of a text that is spoken by itself.
struct SpokenPart {
  std::string text;  // without white space at its ends
  int64_t code_points = 0;
};

// Code points of the longest part: what talkers were trained on is seldom longer.
inline constexpr int64_t longest_part = 400;

// A text's sentences, in order: cut after the marks that end one, in the scripts that have such marks, and at empty
// lines; not within numbers (1.5), after initials and customary abbreviations, or before a small letter. What is longer
// than `most` code points is cut at the last mark of a pause, or else blank, or else anywhere. Marks with nothing to
// say stay with what comes before them, or after; a text of nothing else has no part.
// `text` is UTF-8.
std::vector<SpokenPart> cut_sentences(std::string_view text, int64_t most = longest_part);

}  // namespace consonant
