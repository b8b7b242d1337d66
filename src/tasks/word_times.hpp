// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/window_model.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// How well rows (tokens) fit columns (positions of the window), from the weights of the alignment heads: each is cut to
// `columns` and made to sum to 1 over them, standardised over all tokens, smoothed along time by a median of 7 whose
// edges are reflected, and averaged over the heads. [rows, columns] from `first_row` on.
std::vector<float> alignment_matrix(const WindowModel::Alignment& alignment, int64_t first_row, int64_t rows,
                                    int64_t columns);

// The column at which the path of the greatest sum through `matrix` [rows, columns] enters each row (dynamic time
// warping). A path goes down, right or both; of equally good ways it comes from the left, unless another is strictly
// the best.
std::vector<int64_t> enter_columns(std::span<const float> matrix, int64_t rows, int64_t columns);

// Tokens [first, last) of a text that make a word.
struct WordSpan {
  std::string text;
  size_t first = 0, last = 0;
};

// Cuts a text into words: at spaces, or at each character for the languages that write none. Characters that several
// tokens share stay whole, punctuation joins the word it belongs to, and a word never crosses one of `breaks`
// (positions in `tokens`, ascending).
std::vector<WordSpan> split_words(std::span<const int32_t> tokens, const Tokenizer& tokenizer,
                                  std::string_view language, std::span<const size_t> breaks);

}  // namespace consonant
