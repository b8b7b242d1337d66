// SPDX-License-Identifier: Apache-2.0
#include "tasks/sentence_cuts.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/utf8.hpp"

namespace consonant {

namespace {

using Text = std::u32string_view;

bool is_any(char32_t c, Text of) { return of.find(c) != of.npos; }

bool is_blank(char32_t c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xA0 || (c >= 0x2000 && c <= 0x200B) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 || c == 0xFEFF;
}

// Marks after which a sentence is over whatever follows: those of scripts that have no blanks, or no other use for
// them.
bool ends_anywhere(char32_t c) { return is_any(c, U"。！？｡．।॥؟۔…‽"); }
bool ends_before_blank(char32_t c) { return is_any(c, U".!?"); }
bool closes(char32_t c) { return is_any(c, U"\"')]}”’»›」』】）〉》"); }
bool pauses(char32_t c) { return is_any(c, U",;:–—、，；：،؛"); }

// What a voice can say. Of other scripts than the Latin one all counts that isn't in a block of marks.
bool is_said(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  const bool marks = c < 0xC0 || c == 0xD7 || c == 0xF7 || (c >= 0x2000 && c <= 0x206F) ||
                     (c >= 0x3000 && c <= 0x303F) || (c >= 0xFE10 && c <= 0xFE6F) || (c >= 0xFF00 && c <= 0xFF0F) ||
                     (c >= 0xFF1A && c <= 0xFF20) || (c >= 0xFF3B && c <= 0xFF40) || (c >= 0xFF5B && c <= 0xFF65);
  return !marks && !ends_anywhere(c) && !is_blank(c);
}

bool is_small(char32_t c) { return (c >= 'a' && c <= 'z') || (c >= 0xDF && c <= 0xFF && c != 0xF7); }
bool is_letter(char32_t c) { return is_said(c) && !(c >= '0' && c <= '9'); }

bool is_abbreviation(Text word) {
  static constexpr std::array<Text, 30> known = {U"mr",  U"mrs", U"ms",  U"dr",  U"prof", U"st",  U"jr",  U"sr",
                                                 U"vs",  U"etc", U"fig", U"no",  U"vol",  U"cf",  U"al",  U"inc",
                                                 U"ltd", U"co",  U"bzw", U"ca",  U"nr",   U"z.b", U"d.h", U"u.a",
                                                 U"e.g", U"i.e", U"sra", U"mme", U"hr",   U"fr"};
  std::u32string small(word);
  for (char32_t& c : small)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  return std::find(known.begin(), known.end(), Text(small)) != known.end();
}

class Cutter {
 public:
  Cutter(std::u32string text, int64_t most) : text_(std::move(text)), most_(static_cast<size_t>(most)) {}

  std::vector<SpokenPart> run() {
    size_t begin = 0;
    for (size_t at = 0; at < text_.size();) {
      const size_t end = end_of_sentence(at);
      if (end > at) {
        add(begin, end);
        begin = at = end;
      } else {
        ++at;
      }
    }
    add(begin, text_.size());
    std::vector<SpokenPart> parts;
    for (const auto& [first, last] : parts_) {
      SpokenPart part;
      part.code_points = static_cast<int64_t>(last - first);
      for (size_t i = first; i < last; ++i) append_utf8(part.text, text_[i]);
      parts.push_back(std::move(part));
    }
    return parts;
  }

 private:
  char32_t at(size_t i) const { return i < text_.size() ? text_[i] : U' '; }

  // Where the sentence is over that has a mark of its end, or an empty line, at `i`; `i` if there is none.
  size_t end_of_sentence(size_t i) const {
    if (text_[i] == '\n') {
      size_t next = i + 1;
      while (next < text_.size() && is_blank(text_[next]) && text_[next] != '\n') ++next;
      return next < text_.size() && text_[next] == '\n' ? next + 1 : i;
    }
    const bool anywhere = ends_anywhere(text_[i]);
    if (!anywhere && !ends_before_blank(text_[i])) return i;
    size_t end = i + 1;
    while (end < text_.size() && (ends_anywhere(text_[end]) || ends_before_blank(text_[end]) || closes(text_[end])))
      ++end;
    if (anywhere) return end;
    if (!is_blank(at(end))) return i;  // 1.5, example.org
    size_t next = end;
    while (next < text_.size() && is_blank(text_[next])) ++next;
    if (is_small(at(next))) return i;
    if (text_[i] != '.' || end > i + 1) return end;
    size_t word = i;
    while (word > 0 && !is_blank(text_[word - 1]) && !closes(text_[word - 1]) && !is_any(text_[word - 1], U"([\"“‘«"))
      --word;
    const Text before = Text(text_).substr(word, i - word);
    const bool initial = before.size() == 1 && is_letter(before[0]) && next < text_.size();
    return initial || (is_abbreviation(before) && next < text_.size()) ? i : end;
  }

  // Without white space at the ends, in pieces of the longest length.
  void add(size_t first, size_t last) {
    while (first < last && is_blank(text_[first])) ++first;
    while (last > first && is_blank(text_[last - 1])) --last;
    if (first == last) return;
    const auto from = text_.begin() + static_cast<std::ptrdiff_t>(first);
    if (std::none_of(from, text_.begin() + static_cast<std::ptrdiff_t>(last), is_said)) {
      if (parts_.empty())
        pending_ = first, has_pending_ = true;
      else if (last - parts_.back().first <= most_)
        parts_.back().second = last;
      return;
    }
    if (has_pending_ && last - pending_ <= most_) first = pending_;
    has_pending_ = false;
    while (last - first > most_) {
      const size_t cut = cut_before(first, first + most_);
      size_t end = cut;
      while (end > first && is_blank(text_[end - 1])) --end;
      parts_.push_back({first, end});
      first = cut;
      while (first < last && is_blank(text_[first])) ++first;
    }
    parts_.push_back({first, last});
  }

  // The best place for a cut among the last two thirds of what fits.
  size_t cut_before(size_t first, size_t limit) const {
    const size_t least = first + (limit - first) / 3;
    for (size_t i = limit; i > least; --i)
      if (pauses(text_[i - 1]) && (is_blank(at(i)) || text_[i - 1] > 0x2000)) return i;
    for (size_t i = limit; i > least; --i)
      if (is_blank(text_[i - 1])) return i;
    return limit;
  }

  std::u32string text_;
  size_t most_;
  std::vector<std::pair<size_t, size_t>> parts_;
  size_t pending_ = 0;  // where marks began that nothing came before
  bool has_pending_ = false;
};

}  // namespace

std::vector<SpokenPart> cut_sentences(std::string_view text, int64_t most) {
  std::u32string points;
  for (size_t at = 0; at < text.size();) points += utf8_next(text, at);
  return Cutter(std::move(points), most).run();
}

}  // namespace consonant
