// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "base/utf8.hpp"
#include "text/jinja/case_tables.hpp"

namespace consonant::jinja {

namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

template <size_t n>
bool among(char32_t c, const CharRange (&ranges)[n]) {
  return std::any_of(std::begin(ranges), std::end(ranges),
                     [c](const CharRange& r) { return r.first <= c && c <= r.last; });
}

template <size_t n>
bool put_special(std::u32string& out, char32_t c, const SpecialCase (&table)[n]) {
  const auto* it = std::lower_bound(std::begin(table), std::end(table), c,
                                    [](const SpecialCase& s, char32_t x) { return s.from < x; });
  if (it == std::end(table) || it->from != c) return false;
  for (const char32_t x : it->to)
    if (x) out.push_back(x);
  return true;
}

bool lower_letter(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || among(c, other_lower); }
bool upper_letter(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || among(c, other_upper); }
bool title_letter(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool cased(char32_t c) { return lower_letter(c) || upper_letter(c) || title_letter(c); }

// Unicode's Case_Ignorable.
bool ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      return std::u32string_view(
                 U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07"
                 U"\uff0e\uff1a")
                 .find(c) != std::u32string_view::npos;
  }
}

void put_upper(std::u32string& out, char32_t c) {
  if (!put_special(out, c, special_upper))
    out.push_back(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void put_title(std::u32string& out, char32_t c) {
  if (put_special(out, c, special_title)) return;
  const auto t = static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
  if (t != c || !put_special(out, c, special_upper)) out.push_back(t);
}

// The capital sigma at the end of a word has a small form of its own (Unicode's Final_Sigma).
bool final_sigma(std::u32string_view text, size_t at) {
  size_t i = at;
  while (i > 0 && ignorable(text[i - 1])) --i;
  if (i == 0 || !cased(text[i - 1])) return false;
  size_t j = at + 1;
  while (j < text.size() && ignorable(text[j])) ++j;
  return j == text.size() || !cased(text[j]);
}

void put_lower(std::u32string& out, std::u32string_view text, size_t at) {
  const char32_t c = text[at];
  if (c == 0x130)
    out.append(U"i\u0307");
  else if (c == 0x3A3)
    out.push_back(final_sigma(text, at) ? 0x3C2 : 0x3C3);
  else
    out.push_back(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char ascii_upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char ascii_lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

}  // namespace

int64_t char_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

int64_t char_count(const String& s) {
  if (s.length < 0) s.length = char_count(std::string_view(s.text));
  return s.length;
}

size_t byte_offset(std::string_view text, int64_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
    --index;
  }
  return at;
}

size_t byte_offset(const String& s, int64_t index) {
  if (char_count(s) == static_cast<int64_t>(s.text.size())) return static_cast<size_t>(index);
  return byte_offset(std::string_view(s.text), index);
}

std::u32string decode(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) out.push_back(utf8_next(text, at));
  return out;
}

std::string encode(std::u32string_view chars) {
  std::string out;
  for (const char32_t c : chars) append_utf8(out, c);
  return out;
}

std::string to_upper(std::string_view text) {
  std::string plain(text);
  if (is_ascii(text)) {
    std::transform(plain.begin(), plain.end(), plain.begin(), ascii_upper);
    return plain;
  }
  std::u32string out;
  for (const char32_t c : decode(text)) put_upper(out, c);
  return encode(out);
}

std::string to_lower(std::string_view text) {
  std::string plain(text);
  if (is_ascii(text)) {
    std::transform(plain.begin(), plain.end(), plain.begin(), ascii_lower);
    return plain;
  }
  const std::u32string chars = decode(text);
  std::u32string out;
  for (size_t i = 0; i < chars.size(); ++i) put_lower(out, chars, i);
  return encode(out);
}

std::string to_title(std::string_view text) {
  const std::u32string chars = decode(text);
  std::u32string out;
  bool after_cased = false;
  for (size_t i = 0; i < chars.size(); ++i) {
    if (after_cased)
      put_lower(out, chars, i);
    else
      put_title(out, chars[i]);
    after_cased = cased(chars[i]);
  }
  return encode(out);
}

std::string capitalize(std::string_view text) {
  const std::u32string chars = decode(text);
  std::u32string out;
  for (size_t i = 0; i < chars.size(); ++i) {
    if (i == 0)
      put_title(out, chars[i]);
    else
      put_lower(out, chars, i);
  }
  return encode(out);
}

std::string swap_case(std::string_view text) {
  const std::u32string chars = decode(text);
  std::u32string out;
  for (size_t i = 0; i < chars.size(); ++i) {
    if (upper_letter(chars[i]))
      put_lower(out, chars, i);
    else if (lower_letter(chars[i]))
      put_upper(out, chars[i]);
    else
      out.push_back(chars[i]);
  }
  return encode(out);
}

std::string fold_case(std::string_view text) {
  std::u32string out;
  for (const char32_t c : decode(text)) {
    utf8proc_int32_t folded[8];
    int boundary = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < n; ++i) out.push_back(static_cast<char32_t>(folded[i]));
  }
  return encode(out);
}

bool is_lower(std::string_view text) {
  bool any = false;
  for (const char32_t c : decode(text)) {
    if (upper_letter(c) || title_letter(c)) return false;
    any = any || lower_letter(c);
  }
  return any;
}

bool is_upper(std::string_view text) {
  bool any = false;
  for (const char32_t c : decode(text)) {
    if (lower_letter(c) || title_letter(c)) return false;
    any = any || upper_letter(c);
  }
  return any;
}

bool is_title(std::string_view text) {
  bool any = false, after_cased = false;
  for (const char32_t c : decode(text)) {
    if (upper_letter(c) || title_letter(c)) {
      if (after_cased) return false;
      any = after_cased = true;
    } else if (lower_letter(c)) {
      if (!after_cased) return false;
      any = true;
    } else {
      after_cased = false;
    }
  }
  return any;
}

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(char32_t c) {
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool is_alpha(char32_t c) {
  const auto k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || among(c, other_digit); }

bool is_word(char32_t c) {
  const auto k = category(c);
  return c == '_' || is_alpha(c) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

bool is_printable(char32_t c) {
  const auto k = category(c);
  return c == ' ' || (k != UTF8PROC_CATEGORY_CN && k < UTF8PROC_CATEGORY_ZS);
}

namespace {
bool follows_in_identifier(char32_t c) {
  const auto k = category(c);
  return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ND ||
         k == UTF8PROC_CATEGORY_PC || c == 0xB7;
}
}  // namespace

bool is_identifier_part(char32_t c) { return is_word(c) || (c >= 0x80 && follows_in_identifier(c)); }

bool is_identifier(std::string_view text) {
  const std::u32string chars = decode(text);
  for (size_t i = 0; i < chars.size(); ++i) {
    const bool starts = is_alpha(chars[i]) || chars[i] == '_' || category(chars[i]) == UTF8PROC_CATEGORY_NL;
    if (!starts && (i == 0 || !follows_in_identifier(chars[i]))) return false;
  }
  return !chars.empty();
}

// Decimal digits lie in blocks of ten, from 0 to 9: the tens of their code points differ, so count back to the zero.
int digit_value(char32_t c) {
  if (c >= '0' && c <= '9') return static_cast<int>(c - '0');
  if (c < 0x80 || !is_decimal(c)) return -1;
  char32_t first = c;
  while (is_decimal(first - 1)) --first;
  return static_cast<int>((c - first) % 10);
}

std::string_view strip(std::string_view text, Side side, const std::string* chars) {
  const std::u32string set = chars ? decode(*chars) : std::u32string();
  const auto goes = [&](char32_t c) { return chars ? set.find(c) != std::u32string::npos : is_space(c); };
  size_t from = 0, to = text.size();
  if (side != Side::right) {
    for (size_t at = 0; at < to; from = at)
      if (!goes(utf8_next(text, at))) break;
  }
  if (side != Side::left) {
    while (to > from) {
      size_t at = to - 1;
      while (at > from && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
      const size_t before = at;
      if (!goes(utf8_next(text, at))) break;
      to = before;
    }
  }
  return text.substr(from, to - from);
}

std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string_view> lines;
  size_t from = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = at;
    const char32_t c = utf8_next(text, at);
    if (!is_line_break(c)) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.push_back(text.substr(from, (keep_ends ? at : end) - from));
    from = at;
  }
  if (from < text.size()) lines.push_back(text.substr(from));
  return lines;
}

std::vector<std::string_view> split_space(std::string_view text, int64_t most) {
  std::vector<std::string_view> words;
  for (;;) {
    text = strip(text, Side::left);
    if (text.empty()) return words;
    if (most >= 0 && static_cast<int64_t>(words.size()) == most) {
      words.push_back(text);
      return words;
    }
    size_t at = 0, end = 0;
    while (at < text.size() && !is_space(utf8_next(text, at))) end = at;
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string_view> split_space_right(std::string_view text, int64_t most) {
  std::vector<std::string_view> words;
  for (;;) {
    text = strip(text, Side::right);
    if (text.empty()) break;
    if (most >= 0 && static_cast<int64_t>(words.size()) == most) {
      words.push_back(text);
      break;
    }
    size_t from = text.size();
    while (from > 0) {
      size_t at = from - 1;
      while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
      size_t next = at;
      if (is_space(utf8_next(text, next))) break;
      from = at;
    }
    words.push_back(text.substr(from));
    text = text.substr(0, from);
  }
  std::reverse(words.begin(), words.end());
  return words;
}

}  // namespace consonant::jinja
