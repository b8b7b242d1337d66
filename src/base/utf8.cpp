// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.hpp"

namespace consonant {

namespace {

struct Lead {
  int length;
  unsigned char low, high;  // allowed range of the second byte
};

Lead lead_of(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c < 0xC2) return {-1, 0, 0};
  if (c < 0xE0) return {2, 0x80, 0xBF};
  if (c == 0xE0) return {3, 0xA0, 0xBF};
  if (c == 0xED) return {3, 0x80, 0x9F};
  if (c < 0xF0) return {3, 0x80, 0xBF};
  if (c == 0xF0) return {4, 0x90, 0xBF};
  if (c < 0xF4) return {4, 0x80, 0xBF};
  if (c == 0xF4) return {4, 0x80, 0x8F};
  return {-1, 0, 0};
}

// As utf8_length, and how many bytes the ill-formed or cut part takes.
int scan(std::string_view text, int& taken) {
  taken = 0;
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  taken = 1;
  if (lead.length <= 1) return lead.length;
  for (int i = 1; i < lead.length; ++i) {
    if (static_cast<size_t>(i) >= text.size()) return -2;
    const auto c = static_cast<unsigned char>(text[i]);
    const unsigned char low = i == 1 ? lead.low : 0x80, high = i == 1 ? lead.high : 0xBF;
    if (c < low || c > high) return -1;
    taken = i + 1;
  }
  return lead.length;
}

}  // namespace

int utf8_length(std::string_view text) {
  int taken;
  return scan(text, taken);
}

char32_t utf8_next(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char c = byte(at);
  if (c < 0x80) {
    at += 1;
    return c;
  }
  if (c < 0xE0) {
    at += 2;
    return (c & 0x1Fu) << 6 | (byte(at - 1) & 0x3Fu);
  }
  if (c < 0xF0) {
    at += 3;
    return (c & 0x0Fu) << 12 | (byte(at - 2) & 0x3Fu) << 6 | (byte(at - 1) & 0x3Fu);
  }
  at += 4;
  return (c & 0x07u) << 18 | (byte(at - 3) & 0x3Fu) << 12 | (byte(at - 2) & 0x3Fu) << 6 | (byte(at - 1) & 0x3Fu);
}

size_t find_bad_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const int n = utf8_length(text.substr(at));
    if (n <= 0) return at;
    at += static_cast<size_t>(n);
  }
  return std::string_view::npos;
}

bool is_utf8(std::string_view text) { return find_bad_utf8(text) == std::string_view::npos; }

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6), put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18), put(0x80 | (c >> 12 & 0x3F)), put(0x80 | (c >> 6 & 0x3F)), put(0x80 | (c & 0x3F));
  }
}

std::string sanitize_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    int taken;
    const int n = scan(text.substr(at), taken);
    if (n > 0)
      out.append(text.substr(at, static_cast<size_t>(n)));
    else
      out.append("\xEF\xBF\xBD");
    at += static_cast<size_t>(taken);
  }
  return out;
}

}  // namespace consonant
