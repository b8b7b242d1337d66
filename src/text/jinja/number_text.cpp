// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/number_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "text/jinja/failure.hpp"
#include "text/jinja/library.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

void put_sign(NumberText& out, bool negative, char sign) {
  if (negative)
    out.sign.assign(1, '-');
  else if (sign != '-')
    out.sign.assign(1, sign);
}

std::string grouped(const std::string& digits, char separator, size_t size) {
  std::string out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i && (digits.size() - i) % size == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out;
}

}  // namespace

NumberText integer_text(int64_t value, const FormatSpec& spec) {
  NumberText out;
  put_sign(out, value < 0, spec.sign);
  const uint64_t size = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  size_t group = 4;
  switch (spec.type) {
    case 'b':
      out.digits = fmt::format("{:b}", size);
      break;
    case 'o':
      out.digits = fmt::format("{:o}", size);
      break;
    case 'x':
      out.digits = fmt::format("{:x}", size);
      break;
    case 'X':
      out.digits = fmt::format("{:X}", size);
      break;
    default:
      out.digits = fmt::format("{}", size);
      group = 3;
  }
  if (spec.group) {
    if (spec.group == ',' && group == 4) fail(Fault::value, "Cannot specify ',' with '{}'.", spec.type);
    out.digits = grouped(out.digits, spec.group, group);
  }
  if (spec.alternate && group == 4) out.sign += std::string("0") + spec.type;
  return out;
}

NumberText real_text(double value, const FormatSpec& spec) {
  if (spec.precision > 1000) fail(Fault::unsupported, "a precision of {} digits", spec.precision);
  NumberText out;
  put_sign(out, std::signbit(value) && !std::isnan(value), spec.sign);
  const double size = std::fabs(value);
  const char lower = static_cast<char>(spec.type >= 'A' && spec.type <= 'Z' ? spec.type + 32 : spec.type);
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  if (!std::isfinite(value)) {
    out.digits = std::isnan(value) ? "nan" : "inf";
  } else if (lower == 'e') {
    out.digits = spec.alternate ? fmt::format("{:#.{}e}", size, precision) : fmt::format("{:.{}e}", size, precision);
  } else if (lower == 'f') {
    out.digits = spec.alternate ? fmt::format("{:#.{}f}", size, precision) : fmt::format("{:.{}f}", size, precision);
  } else if (lower == '%') {
    out.digits = fmt::format("{:.{}f}", size * 100, precision);
  } else if (lower == 'g' || lower == 'n' || spec.precision >= 0) {
    const int digits = std::max(precision, 1);
    out.digits = spec.alternate ? fmt::format("{:#.{}g}", size, digits) : fmt::format("{:.{}g}", size, digits);
    if (lower == 0 && out.digits.find_first_of(".e") == std::string::npos) out.digits += ".0";
  } else {
    out.digits = repr_real(size);
  }
  if (spec.group && std::isfinite(value)) {
    const size_t whole = std::min(out.digits.find_first_of(".e"), out.digits.size());
    out.digits = grouped(out.digits.substr(0, whole), spec.group, 3) + out.digits.substr(whole);
  }
  if (lower == '%') out.digits += "%";
  if (spec.type >= 'A' && spec.type <= 'Z')
    std::transform(out.digits.begin(), out.digits.end(), out.digits.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return out;
}

std::string filled(const NumberText& text, const FormatSpec& spec, char otherwise, size_t limit) {
  const int64_t missing = spec.width - char_count(text.sign) - char_count(text.digits);
  if (missing <= 0) return text.sign + text.digits;
  std::string fill;
  append_utf8(fill, spec.fill);
  if (static_cast<uint64_t>(missing) > limit / fill.size()) fail(Fault::limit, "a string longer than {} bytes", limit);
  const char align = spec.align ? spec.align : otherwise;
  if (align == '=' && spec.group && spec.fill == '0')
    fail(Fault::unsupported, "zeros in front of digits that are grouped");
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const auto put = [&](std::string& out, int64_t n) {
    for (; n > 0; --n) out += fill;
  };
  std::string out;
  if (align == '=') out = text.sign;
  put(out, left);
  out += align == '=' ? text.digits : text.sign + text.digits;
  put(out, missing - left);
  return out;
}

namespace {

// Digits of any script become ASCII, single underscores between digits go; false where Python refuses.
bool plain_number(std::string_view text, std::string& out) {
  for (const char32_t c : decode(strip(text, Side::both))) {
    const int digit = digit_value(c);
    if (digit >= 0)
      out.push_back(static_cast<char>('0' + digit));
    else if (c < 0x80 && c != 0)
      out.push_back(static_cast<char>(c));
    else
      return false;
  }
  const auto alnum = [](char c) { return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z'); };
  for (size_t i = 0; i < out.size(); ++i)
    if (out[i] == '_' && (i == 0 || i + 1 == out.size() || !alnum(out[i - 1]) || !alnum(out[i + 1]))) return false;
  return true;
}

}  // namespace

bool parse_integer(std::string_view text, int64_t base, int64_t& value) {
  if (base != 0 && (base < 2 || base > 36)) fail(Fault::value, "int() base must be >= 2 and <= 36, or 0");
  std::string s;
  if (!plain_number(text, s)) return false;
  size_t at = 0;
  const bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) ++at;
  if (s.size() > at + 1 && s[at] == '0') {
    const char p = static_cast<char>(s[at + 1] | 0x20);
    const int64_t prefix = p == 'x' ? 16 : p == 'o' ? 8 : p == 'b' ? 2 : 0;
    if (prefix && (base == prefix || base == 0)) {
      base = prefix;
      at += 2;
      if (at < s.size() && s[at] == '_') ++at;
    } else if (base == 0 && s.find_first_not_of("0_", at) != std::string::npos) {
      return false;  // 012
    }
  }
  if (base == 0) base = 10;
  std::string digits = negative ? "-" : "";
  for (; at < s.size(); ++at)
    if (s[at] != '_') digits.push_back(s[at]);
  if (digits.size() == (negative ? 1u : 0u) || digits[negative ? 1 : 0] == '-') return false;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (result.ptr != digits.data() + digits.size()) return false;
  if (result.ec == std::errc::result_out_of_range) fail(Fault::unsupported, "the integer {} is beyond 64 bits", digits);
  return result.ec == std::errc();
}

bool parse_real(std::string_view text, double& value) {
  std::string s;
  if (!plain_number(text, s)) return false;
  size_t at = 0;
  const bool negative = !s.empty() && s[0] == '-';
  if (!s.empty() && (s[0] == '-' || s[0] == '+')) ++at;
  const std::string word = to_lower(s.substr(at));
  if (word == "inf" || word == "infinity" || word == "nan") {
    value = word == "nan" ? std::nan("") : negative ? -INFINITY : INFINITY;
    return true;
  }
  // No underscore stands beside anything but a digit here, so they can go.
  std::string digits;
  for (; at < s.size(); ++at) {
    const bool number =
        (s[at] >= '0' && s[at] <= '9') || std::string_view(".eE+-").find(s[at]) != std::string_view::npos;
    if (s[at] == '_') continue;
    if (!number) return false;
    digits.push_back(s[at]);
  }
  if (digits.empty() || digits[0] == '-' || digits[0] == '+') return false;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ptr != digits.data() + digits.size() || result.ec == std::errc::invalid_argument) return false;
  if (result.ec == std::errc::result_out_of_range) {
    const size_t e = digits.find_first_of("eE");
    const bool small = e != std::string::npos ? digits[e + 1] == '-'
                                              : digits.find_first_not_of("0.") != std::string::npos && digits[0] == '0';
    value = small ? 0.0 : INFINITY;
  }
  if (negative) value = -value;
  return true;
}

}  // namespace consonant::jinja
