// SPDX-License-Identifier: Apache-2.0
#include "tasks/word_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

constexpr int64_t reach = 3;  // of the median to either side

void order(float& a, float& b) {
  const float less = a < b ? a : b, more = a < b ? b : a;
  a = less, b = more;
}

// The middle one of seven, by exchanges without branches, so that a loop over it vectorises.
float median(float a, float b, float c, float d, float e, float f, float g) {
  order(a, f), order(a, d), order(b, g), order(c, e), order(a, b), order(d, f), order(c, g);
  order(c, d), order(d, g), order(e, f), order(b, e), order(b, d), order(d, e);
  return d;
}

// Adds the medians of row [n] to `to`; `padded` holds n + 2 reach.
void add_medians(const std::vector<float>& row, std::vector<float>& padded, float* to) {
  const auto n = static_cast<int64_t>(row.size());
  if (n <= reach) {  // nothing to reflect
    for (int64_t i = 0; i < n; ++i) to[i] += row[static_cast<size_t>(i)];
    return;
  }
  std::copy(row.begin(), row.end(), padded.begin() + reach);
  for (int64_t i = 1; i <= reach; ++i) {
    padded[static_cast<size_t>(reach - i)] = row[static_cast<size_t>(i)];
    padded[static_cast<size_t>(reach + n - 1 + i)] = row[static_cast<size_t>(n - 1 - i)];
  }
  const float* p = padded.data();
  for (int64_t i = 0; i < n; ++i) {
    to[i] += median(p[i], p[i + 1], p[i + 2], p[i + 3], p[i + 4], p[i + 5], p[i + 6]);
  }
}

}  // namespace

std::vector<float> alignment_matrix(const WindowModel::Alignment& alignment, int64_t first_row, int64_t rows,
                                    int64_t columns) {
  const auto tokens = static_cast<int64_t>(alignment.probability.size());
  const bool fits = static_cast<int64_t>(alignment.weights.size()) == alignment.heads * tokens * alignment.positions;
  if (!fits || alignment.heads < 1 || first_row < 0 || rows < 1 || first_row + rows > tokens) {
    throw_error(Exit::failed, "the model's alignment has {} weights for {} heads, {} tokens and {} positions",
                alignment.weights.size(), alignment.heads, tokens, alignment.positions);
  }
  columns = std::clamp<int64_t>(columns, 1, alignment.positions);
  const auto wide = static_cast<size_t>(columns);
  std::vector<float> matrix(static_cast<size_t>(rows) * wide, 0.0f);
  std::vector<double> mean(wide), deviation(wide), scale(static_cast<size_t>(tokens));
  std::vector<float> row(wide), padded(wide + 2 * reach);
  for (int64_t h = 0; h < alignment.heads; ++h) {
    const float* head = alignment.weights.data() + h * tokens * alignment.positions;
    std::fill(mean.begin(), mean.end(), 0.0);
    std::fill(deviation.begin(), deviation.end(), 0.0);
    for (int64_t t = 0; t < tokens; ++t) {
      const float* w = head + t * alignment.positions;
      double sum = 0;
      for (size_t c = 0; c < wide; ++c) sum += double(w[c]);
      const double s = scale[static_cast<size_t>(t)] = sum > 0 ? 1 / sum : 0;
      for (size_t c = 0; c < wide; ++c) mean[c] += double(w[c]) * s;
    }
    for (double& m : mean) m /= double(tokens);
    for (int64_t t = 0; t < tokens; ++t) {
      const float* w = head + t * alignment.positions;
      const double s = scale[static_cast<size_t>(t)];
      for (size_t c = 0; c < wide; ++c) deviation[c] += (double(w[c]) * s - mean[c]) * (double(w[c]) * s - mean[c]);
    }
    // Where all rows are the same but for rounding, none stands out.
    for (double& d : deviation) d = d > 1e-20 * double(tokens) ? std::sqrt(d / double(tokens)) : 1;
    for (int64_t r = 0; r < rows; ++r) {
      const float* w = head + (first_row + r) * alignment.positions;
      const double s = scale[static_cast<size_t>(first_row + r)];
      for (size_t c = 0; c < wide; ++c) row[c] = static_cast<float>((double(w[c]) * s - mean[c]) / deviation[c]);
      add_medians(row, padded, matrix.data() + r * columns);
    }
  }
  for (float& x : matrix) x /= static_cast<float>(alignment.heads);
  return matrix;
}

std::vector<int64_t> enter_columns(std::span<const float> matrix, int64_t rows, int64_t columns) {
  enum Step : uint8_t { both, down, right };
  constexpr double far = std::numeric_limits<double>::infinity();
  const auto wide = static_cast<size_t>(columns) + 1;
  std::vector<double> above(wide, far), here(wide);
  above[0] = 0;
  std::vector<uint8_t> came(static_cast<size_t>(rows) * wide, right);
  for (int64_t i = 0; i < rows; ++i) {
    const float* m = matrix.data() + i * columns;
    uint8_t* step = came.data() + static_cast<size_t>(i) * wide;
    here[0] = far;
    for (size_t j = 1; j < wide; ++j) {
      const double a = above[j - 1], b = above[j], c = here[j - 1];
      const bool diagonal = a < b && a < c, vertical = b < a && b < c;
      step[j] = diagonal ? both : vertical ? down : right;
      here[j] = (diagonal ? a : vertical ? b : c) - double(m[j - 1]);
    }
    std::swap(above, here);
  }
  std::vector<int64_t> enters(static_cast<size_t>(rows), 0);
  int64_t i = rows - 1, j = columns;
  while (i >= 0) {
    if (j < 1) {  // the rows that are left begin where the path ran out of columns
      enters[static_cast<size_t>(i--)] = 0;
      continue;
    }
    const uint8_t step = came[static_cast<size_t>(i) * wide + static_cast<size_t>(j)];
    if (step == right) {
      --j;
      if (j == 0) enters[static_cast<size_t>(i--)] = 0;
      continue;
    }
    enters[static_cast<size_t>(i--)] = j - 1;
    if (step == both) --j;
  }
  return enters;
}

namespace {

// Punctuation that opens a word, and that closes one.
bool opens(std::string_view text) {
  static const std::set<std::string, std::less<>> all = {"\"", "'", "“", "‘",  "¿",  "¡",  "(",  "[",
                                                         "{",  "-", "«", "「", "『", "（", "〈", "《"};
  return all.find(text) != all.end();
}

bool closes(std::string_view text) {
  static const std::set<std::string, std::less<>> all = {"\"", "'",  ".",  "。", ",",  "，", "!",  "！", "?", "？",
                                                         ":",  "：", "”",  "’",  ")",  "]",  "}",  "、", ";", "；",
                                                         "…",  "»",  "」", "』", "）", "〉", "》", "%",  "।"};
  return all.find(text) != all.end();
}

bool writes_no_spaces(std::string_view language) {
  static const std::set<std::string, std::less<>> all = {"zh", "ja", "th", "lo", "my", "yue"};
  return all.find(language) != all.end();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Tokens joined until they hold whole characters.
std::vector<WordSpan> whole_characters(std::span<const int32_t> tokens, const Tokenizer& tokenizer,
                                       std::span<const size_t> breaks) {
  std::vector<WordSpan> parts;
  std::string bytes;
  size_t first = 0;
  const auto close = [&](size_t last) {
    if (last > first) parts.push_back({sanitize_utf8(bytes), first, last});
    bytes.clear();
    first = last;
  };
  const auto cut_off = [&] {  // inside a character that may yet be completed
    size_t at = 0;
    while (at < bytes.size()) {
      const int length = utf8_length(std::string_view(bytes).substr(at));
      if (length == -2) return true;
      at += length > 0 ? static_cast<size_t>(length) : 1;
    }
    return false;
  };
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (std::binary_search(breaks.begin(), breaks.end(), i)) close(i);
    tokenizer.append_bytes(tokens[i], bytes);
    if (!cut_off()) close(i + 1);
  }
  close(tokens.size());
  return parts;
}

}  // namespace

std::vector<WordSpan> split_words(std::span<const int32_t> tokens, const Tokenizer& tokenizer,
                                  std::string_view language, std::span<const size_t> breaks) {
  const bool spaceless = writes_no_spaces(language);
  std::vector<WordSpan> words;
  bool waits = false;  // the last word is a mark that opens the next, or a lone space
  for (WordSpan& part : whole_characters(tokens, tokenizer, breaks)) {
    const std::string_view text = trimmed(part.text);
    const bool broken = words.empty() || std::binary_search(breaks.begin(), breaks.end(), part.first);
    const bool spaced = part.text.starts_with(' '), closing = closes(text) && !spaced;
    const bool opening = text.empty() || (opens(text) && !closing);
    const bool joins = !broken && (waits || (spaceless ? closing : !spaced && !opening));
    waits = opening && !joins;
    if (joins) {
      words.back().text += part.text;
      words.back().last = part.last;
    } else {
      words.push_back(std::move(part));
    }
  }
  if (words.size() > 1 && trimmed(words.back().text).empty()) {
    words[words.size() - 2].last = words.back().last;
    words.pop_back();
  }
  return words;
}

}  // namespace consonant
