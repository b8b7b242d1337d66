// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace consonant {

// Byte-level BPE writes each byte as one printable character: the printable ones of Latin-1 stand for themselves, the
// others, in order, for U+0100 and on. A space is U+0120.
char32_t byte_to_char(uint8_t byte);

// The bytes that a token's text stands for. Characters outside the alphabet stand for themselves.
void append_bytes_of(std::string_view text, std::string& out);

// `bytes` written in the alphabet.
void append_chars_of(std::string_view bytes, std::string& out);

}  // namespace consonant
