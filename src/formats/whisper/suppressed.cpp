// SPDX-License-Identifier: Apache-2.0
// The tokens that the reference never writes, told from a vocabulary.
#include <array>
#include <set>

#include "base/byte_level.hpp"
#include "formats/whisper/tokens.hpp"

namespace consonant {

namespace {

// Each alone and after a space. One that isn't a single token may stay, since its parts are needed elsewhere.
constexpr std::string_view symbols[] = {"\"",  "#",  "(",  ")",   "*",   "+",   "/",   ":",  ";",   "<",  "=",  ">",
                                        "@",   "[",  "\\", "]",   "^",   "_",   "`",   "{",  "|",   "}",  "~",  "「",
                                        "」",  "『", "』", "<<",  ">>",  "<<<", ">>>", "--", "---", "-(", "-[", "('",
                                        "(\"", "((", "))", "(((", ")))", "[[",  "]]",  "{{", "}}",  "♪♪", "♪♪♪"};

// Signs of music lie close together in Unicode and share their first two bytes, so the first token of each may go too.
constexpr std::string_view music[] = {"♩", "♪", "♫", "♬", "♭", "♮", "♯"};

// Between words these may stand, not before one.
constexpr std::string_view before_words[] = {" -", " '"};

class Words {
 public:
  Words(std::span<const std::string> texts, int32_t count) : ranks_(texts, static_cast<size_t>(count)), count_(count) {}

  void add_first(std::string_view word, bool only_if_whole, std::set<int64_t>& out) const {
    std::string chars;
    append_chars_of(word, chars);
    const auto parts = ranks_.split(chars, count_);
    if (parts.empty() || (only_if_whole && parts.size() != 1)) return;
    if (const int32_t id = ranks_.id(parts.front()); id >= 0) out.insert(id);
  }

 private:
  RankedMerges ranks_;
  int32_t count_;
};

}  // namespace

std::vector<int64_t> whisper_suppressed(std::span<const std::string> texts, const WhisperControls& controls) {
  std::set<int64_t> out;
  const Words words(texts, controls.end);
  for (const std::string_view word : before_words) words.add_first(word, false, out);
  for (const std::string prefix : {"", " "}) {
    for (const std::string_view symbol : symbols) words.add_first(prefix + std::string(symbol), true, out);
    for (const std::string_view symbol : music) words.add_first(prefix + std::string(symbol), false, out);
  }
  for (const int32_t id : {controls.start(), controls.translate(), controls.transcribe(), controls.start_of_lm(),
                           controls.previous(), controls.no_speech()})
    out.insert(id);
  return {out.begin(), out.end()};
}

std::vector<int64_t> whisper_suppressed_at_begin(std::span<const std::string> texts, const WhisperControls& controls) {
  std::set<int64_t> out = {controls.end};
  Words(texts, controls.end).add_first(" ", true, out);
  return {out.begin(), out.end()};
}

}  // namespace consonant
