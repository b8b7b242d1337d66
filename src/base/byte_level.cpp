// SPDX-License-Identifier: Apache-2.0
#include "base/byte_level.hpp"

#include "base/utf8.hpp"

namespace consonant {

namespace {

constexpr int alphabet_end = 0x144;  // 256 + 68 bytes that aren't printable

constexpr bool printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

constexpr std::array<uint16_t, 256> make_chars() {
  std::array<uint16_t, 256> chars{};
  int next = 256;
  for (int b = 0; b < 256; ++b) chars[static_cast<size_t>(b)] = static_cast<uint16_t>(printable(b) ? b : next++);
  return chars;
}

constexpr std::array<uint16_t, 256> chars = make_chars();

constexpr std::array<int16_t, alphabet_end> make_bytes() {
  std::array<int16_t, alphabet_end> bytes{};
  for (auto& b : bytes) b = -1;
  for (int b = 0; b < 256; ++b) bytes[chars[static_cast<size_t>(b)]] = static_cast<int16_t>(b);
  return bytes;
}

constexpr std::array<int16_t, alphabet_end> bytes_of = make_bytes();
static_assert(chars[' '] == 0x120 && chars['\n'] == 0x10A && bytes_of[0x143] == 0xAD);

}  // namespace

char32_t byte_to_char(uint8_t byte) { return chars[byte]; }

void append_bytes_of(std::string_view text, std::string& out) {
  for (size_t at = 0; at < text.size();) {
    const size_t start = at;
    const char32_t c = utf8_next(text, at);
    if (c < alphabet_end && bytes_of[c] >= 0)
      out.push_back(static_cast<char>(bytes_of[c]));
    else
      out.append(text.substr(start, at - start));
  }
}

void append_chars_of(std::string_view bytes, std::string& out) {
  for (const char c : bytes) append_utf8(out, byte_to_char(static_cast<uint8_t>(c)));
}

}  // namespace consonant
