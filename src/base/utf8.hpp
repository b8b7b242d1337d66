// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace consonant {

// Length in bytes of the well-formed UTF-8 character at the start of `text` (1 to 4); 0 if `text` is empty, -1 if the
// bytes there can't start or continue a character, -2 if the character is cut off by the end of `text`.
// Overlong forms, surrogates and values past U+10FFFF are ill-formed (Unicode 15, table 3-7).
int utf8_length(std::string_view text);

// Decodes the character at `text[at]` and moves `at` past it. The text must be valid there.
char32_t utf8_next(std::string_view text, size_t& at);

bool is_utf8(std::string_view text);

// Offset of the first ill-formed byte, or npos.
size_t find_bad_utf8(std::string_view text);

// Appends the UTF-8 form of `c`.
void append_utf8(std::string& out, char32_t c);

// Every maximal ill-formed part replaced by U+FFFD, as the Unicode standard recommends.
std::string sanitize_utf8(std::string_view text);

}  // namespace consonant
