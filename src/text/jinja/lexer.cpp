// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/lexer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "text/jinja/failure.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

// \r\n and \r become \n, and one newline at the very end goes.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out.push_back(source[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool digit_of(char c, int base) {
  if (c >= '0' && c <= '9') return c - '0' < base;
  const char l = static_cast<char>(c | 0x20);
  return base == 16 && l >= 'a' && l <= 'f';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(normalized(source)) {}
  std::vector<Token> run();

 private:
  bool at(std::string_view text) const { return rest().substr(0, text.size()) == text; }
  std::string_view rest() const { return std::string_view(source_).substr(pos_); }
  void add(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  // Moves over the text and counts its lines.
  void skip(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(pos_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(pos_ + bytes), '\n'));
    pos_ += bytes;
  }
  void skip_space() { skip(rest().size() - strip(rest(), Side::left).size()); }
  void line_starts() { line_starting_ = pos_ > 0 && source_[pos_ - 1] == '\n'; }

  void data(size_t end, char sign, bool strips);
  void root();
  void comment();
  bool raw_begin(size_t at, size_t& after, bool& strip_after) const;
  void raw(size_t begin, size_t after, bool strip_after);
  size_t raw_end(size_t from, size_t& after, char& sign, char& end_sign) const;
  void inside(bool block);
  bool tag_end(bool block);
  void token();
  void number();
  bool real_number();
  void string();
  void escape_sequence(std::string& out, std::string_view body, size_t& i) const;
  void name();
  void op();

  const std::string source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the text before `pos_` ends a line, or there is none
  std::vector<Token> tokens_;
  std::string open_;  // brackets that wait for their ends
};

// The text from `pos_` up to `end`, where a tag with this sign stands.
void Lexer::data(size_t end, char sign, bool strips) {
  std::string_view text = std::string_view(source_).substr(pos_, end - pos_);
  if (sign == '-') {
    text = strip(text, Side::right);
  } else if (sign != '+' && strips) {
    const size_t newline = text.rfind('\n');
    const size_t from = newline == std::string_view::npos ? 0 : newline + 1;
    if ((from > 0 || line_starting_) && from < text.size() && strip(text.substr(from), Side::both).empty())
      text = text.substr(0, from);
  }
  if (!text.empty()) add(TokenKind::text, std::string(text));
  skip(end - pos_);
}

// {% raw %} or {%- raw -%} at `at`; jinja2 takes no plus sign at its end.
bool Lexer::raw_begin(size_t at, size_t& after, bool& strip_after) const {
  const std::string_view s = source_;
  const auto spaces = [&](size_t i) { return i + (s.substr(i).size() - strip(s.substr(i), Side::left).size()); };
  size_t i = at + 2;
  if (i < s.size() && (s[i] == '-' || s[i] == '+')) ++i;
  i = spaces(i);
  if (s.substr(i, 3) != "raw") return false;
  i = spaces(i + 3);
  strip_after = i < s.size() && s[i] == '-';
  if (strip_after) ++i;
  if (s.substr(i, 2) != "%}") return false;
  after = i + 2;
  return true;
}

// The start of the next {% endraw %}, with what stands after it.
size_t Lexer::raw_end(size_t from, size_t& after, char& sign, char& end_sign) const {
  const std::string_view s = source_;
  const auto spaces = [&](size_t i) { return i + (s.substr(i).size() - strip(s.substr(i), Side::left).size()); };
  for (size_t begin = s.find("{%", from); begin != std::string_view::npos; begin = s.find("{%", begin + 1)) {
    size_t i = begin + 2;
    sign = i < s.size() && (s[i] == '-' || s[i] == '+') ? s[i++] : ' ';
    i = spaces(i);
    if (s.substr(i, 6) != "endraw") continue;
    i = spaces(i + 6);
    end_sign = i < s.size() && (s[i] == '-' || s[i] == '+') ? s[i++] : ' ';
    if (s.substr(i, 2) != "%}") continue;
    after = i + 2;
    return begin;
  }
  return std::string_view::npos;
}

void Lexer::raw(size_t begin, size_t after, bool strip_after) {
  const int line = line_;
  skip(after - begin);
  if (strip_after) skip_space();
  line_starts();
  char sign, end_sign;
  const size_t end = raw_end(pos_, after, sign, end_sign);
  if (end == std::string::npos) fail_at(line, "{{% raw %}} has no {{% endraw %}}");
  data(end, sign, true);
  skip(after - end);
  if (end_sign == '-')
    skip_space();
  else if (end_sign == ' ' && at("\n"))
    skip(1);
  line_starts();
}

void Lexer::comment() {
  const size_t end = source_.find("#}", pos_);
  if (end == std::string::npos) fail_at(line_, "missing end of comment tag");
  const char sign = end > pos_ ? source_[end - 1] : ' ';
  skip(end + 2 - pos_);
  if (sign == '-')
    skip_space();
  else if (sign != '+' && at("\n"))
    skip(1);
  line_starts();
}

// Text, up to the next tag and the tag's beginning.
void Lexer::root() {
  size_t begin = pos_;
  for (;; ++begin) {
    begin = source_.find('{', begin);
    if (begin == std::string::npos || begin + 1 >= source_.size()) {
      if (pos_ < source_.size()) add(TokenKind::text, source_.substr(pos_));
      pos_ = source_.size();
      return;
    }
    const char kind = source_[begin + 1];
    if (kind == '%' || kind == '{' || kind == '#') break;
  }
  size_t after = 0;
  bool strip_after = false;
  const char kind = source_[begin + 1];
  const bool is_raw = kind == '%' && raw_begin(begin, after, strip_after);
  const char next = begin + 2 < source_.size() ? source_[begin + 2] : ' ';
  const char sign = next == '-' || next == '+' ? next : ' ';
  data(begin, sign, kind != '{');
  if (is_raw) return raw(begin, after, strip_after);
  const size_t length = sign == ' ' ? 2 : 3;
  if (kind != '#') add(kind == '%' ? TokenKind::block_begin : TokenKind::output_begin, source_.substr(begin, length));
  skip(length);
  line_starts();
  if (kind == '#') return comment();
  inside(kind == '%');
}

bool Lexer::tag_end(bool block) {
  if (!open_.empty()) return false;
  const std::string_view end = block ? "%}" : "}}";
  const char sign = (at("-") || (block && at("+"))) && rest().substr(1, 2) == end ? source_[pos_] : ' ';
  if (sign == ' ' && !at(end)) return false;
  add(block ? TokenKind::block_end : TokenKind::output_end, std::string(end));
  skip(sign == ' ' ? 2 : 3);
  if (sign == '-')
    skip_space();
  else if (sign == ' ' && block && at("\n"))
    skip(1);
  line_starts();
  return true;
}

void Lexer::inside(bool block) {
  open_.clear();
  const int line = line_;
  for (;;) {
    if (tag_end(block)) return;
    if (pos_ == source_.size()) fail_at(line, "{} has no end", block ? "{%" : "{{");
    const size_t before = pos_;
    skip_space();
    if (pos_ == before) token();
  }
}

void Lexer::token() {
  const char c = source_[pos_];
  if (c >= '0' && c <= '9') return number();
  if (c == '\'' || c == '"') return string();
  if (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return name();
  if (static_cast<unsigned char>(c) >= 0x80) return name();
  op();
}

void Lexer::name() {
  size_t end = pos_;
  for (size_t next = pos_; next < source_.size() && is_identifier_part(utf8_next(source_, next));) end = next;
  const std::string word = source_.substr(pos_, end - pos_);
  if (word.empty() || !is_identifier(word)) {
    size_t next = pos_;
    utf8_next(source_, next);
    fail_at(line_, "unexpected character '{}'", word.empty() ? source_.substr(pos_, next - pos_) : word);
  }
  add(TokenKind::name, word);
  skip(word.size());
}

// digits [. digits] [e digits], with underscores between digits, and a dot or an exponent at least.
bool Lexer::real_number() {
  if (pos_ > 0 && source_[pos_ - 1] == '.') return false;
  const std::string_view s = rest();
  const auto digits = [&](size_t i) {
    size_t end = i;
    while (end < s.size() && (digit_of(s[end], 10) || (s[end] == '_' && end > i && s[end - 1] != '_'))) ++end;
    while (end > i && s[end - 1] == '_') --end;
    return end;
  };
  const size_t whole = digits(0);
  size_t end = whole;
  if (end < s.size() && s[end] == '.' && digits(end + 1) > end + 1) end = digits(end + 1);
  if (end < s.size() && (s[end] == 'e' || s[end] == 'E')) {
    size_t from = end + 1;
    if (from < s.size() && (s[from] == '+' || s[from] == '-')) ++from;
    if (digits(from) > from) end = digits(from);
  }
  if (end == whole) return false;
  std::string text(s.substr(0, end));
  text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range && text.find("e-") == std::string::npos &&
      text.find("E-") == std::string::npos)
    fail_at(line_, "the number {} is too large", text);
  tokens_.push_back({TokenKind::real, line_, text, 0, value});
  skip(end);
  return true;
}

void Lexer::number() {
  if (real_number()) return;
  const std::string_view s = rest();
  int base = 10;
  size_t i = 0;
  if (s.size() > 1 && s[0] == '0') {
    const char l = static_cast<char>(s[1] | 0x20);
    const int wanted = l == 'x' ? 16 : l == 'o' ? 8 : l == 'b' ? 2 : 10;
    size_t first = 2;
    if (first < s.size() && s[first] == '_') ++first;
    if (wanted != 10 && first < s.size() && digit_of(s[first], wanted)) {
      base = wanted;
      i = 2;
    }
  }
  const bool zero = base == 10 && s[0] == '0';
  std::string digits;
  for (; i < s.size(); ++i) {
    const bool underscore = s[i] == '_' && i + 1 < s.size() && digit_of(s[i + 1], base);
    if (!underscore && !digit_of(s[i], base)) break;
    if (zero && s[i] != '0' && !(underscore && s[i + 1] == '0')) break;
    if (!underscore) digits.push_back(s[i]);
  }
  int64_t value = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value, base).ec != std::errc())
    fail_at(line_, "the integer {} is beyond 64 bits", s.substr(0, i));
  tokens_.push_back({TokenKind::integer, line_, digits, value});
  skip(i);
}

// One of Python's backslash escapes; `i` stands after the backslash.
void Lexer::escape_sequence(std::string& out, std::string_view body, size_t& i) const {
  static constexpr std::string_view plain = "\\'\"abfnrtv", meaning = "\\'\"\a\b\f\n\r\t\v";
  const char c = body[i++];
  if (c == '\n') return;
  if (const size_t known = plain.find(c); known != std::string_view::npos) {
    out.push_back(meaning[known]);
    return;
  }
  if (c == 'N') fail_at(line_, "\\N{{...}} in a string isn't supported: write the character or \\u and its number");
  uint32_t value = 0;
  if (c == 'x' || c == 'u' || c == 'U') {
    const size_t wanted = c == 'x' ? 2 : c == 'u' ? 4 : 8;
    const std::string_view hex = body.substr(i, wanted);
    const auto result = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
    if (hex.size() < wanted || result.ec != std::errc() || result.ptr != hex.data() + wanted)
      fail_at(line_, "\\{} in a string needs {} hexadecimal digits", c, wanted);
    i += wanted;
  } else if (digit_of(c, 8)) {
    value = static_cast<uint32_t>(c - '0');
    for (int n = 1; n < 3 && i < body.size() && digit_of(body[i], 8); ++n)
      value = value * 8 + static_cast<uint32_t>(body[i++] - '0');
  } else if (static_cast<unsigned char>(c) >= 0x80) {
    fail_at(line_, "a backslash before a character beyond ASCII in a string isn't supported");
  } else {  // anything else stays as it is
    out.push_back('\\');
    --i;
    return;
  }
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000))
    fail_at(line_, "\\{} in a string: U+{:04X} is no character", c, value);
  append_utf8(out, value);
}

void Lexer::string() {
  const char quote = source_[pos_];
  size_t end = pos_ + 1;
  while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
  if (end >= source_.size()) fail_at(line_, "a string has no end");
  const std::string_view body = std::string_view(source_).substr(pos_ + 1, end - pos_ - 1);
  std::string value;
  for (size_t i = 0; i < body.size();) {
    if (body[i] != '\\')
      value.push_back(body[i++]);
    else
      escape_sequence(value, body, ++i);
  }
  add(TokenKind::string, std::move(value));
  skip(end + 1 - pos_);
}

void Lexer::op() {
  static constexpr std::string_view two[] = {"//", "**", "==", "!=", ">=", "<="};
  static constexpr std::string_view one = "+-/*%~[](){}><=.:|,;";
  const char c = source_[pos_];
  for (const auto op : two) {
    if (!at(op)) continue;
    add(TokenKind::op, std::string(op));
    return skip(2);
  }
  if (one.find(c) == std::string_view::npos) fail_at(line_, "unexpected character '{}'", c);
  if (c == '{' || c == '(' || c == '[') open_.push_back(c == '{' ? '}' : c == '(' ? ')' : ']');
  if (c == '}' || c == ')' || c == ']') {
    if (open_.empty()) fail_at(line_, "unexpected '{}'", c);
    if (open_.back() != c) fail_at(line_, "unexpected '{}', expected '{}'", c, open_.back());
    open_.pop_back();
  }
  add(TokenKind::op, std::string(1, c));
  skip(1);
}

std::vector<Token> Lexer::run() {
  if (const size_t bad = find_bad_utf8(source_); bad != std::string::npos)
    fail_at(1 + static_cast<int>(std::count(source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(bad), '\n')),
            "the template isn't UTF-8");
  while (pos_ < source_.size()) root();
  add(TokenKind::end, "");
  return std::move(tokens_);
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  if (source.size() > max_source) throw Failure(Fault::limit, "the template is larger than 1 MiB", 1);
  return Lexer(source).run();
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::text:
      return "text";
    case TokenKind::output_begin:
      return "'{{'";
    case TokenKind::output_end:
      return "'}}'";
    case TokenKind::block_begin:
      return "'{%'";
    case TokenKind::block_end:
      return "'%}'";
    case TokenKind::string:
      return "a string";
    case TokenKind::end:
      return "the end of the template";
    default:
      return "'" + token.text + "'";
  }
}

}  // namespace consonant::jinja
