// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.hpp"

namespace consonant::jinja {

// Python counts strings in code points.
int64_t char_count(std::string_view text);
int64_t char_count(const String& s);  // remembers it
// Byte offset of code point `index`, which is at most the count.
size_t byte_offset(const String& s, int64_t index);
size_t byte_offset(std::string_view text, int64_t index);

std::u32string decode(std::string_view text);
std::string encode(std::u32string_view chars);

// Python's str methods of these names.
std::string to_upper(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string swap_case(std::string_view text);
std::string fold_case(std::string_view text);
bool is_lower(std::string_view text);
bool is_upper(std::string_view text);
bool is_title(std::string_view text);

bool is_space(char32_t c);
bool is_line_break(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_word(char32_t c);  // a letter, a number of any kind, the underscore
bool is_printable(char32_t c);
bool is_identifier_part(char32_t c);  // may stand within one; digits of all kinds count
bool is_identifier(std::string_view text);
int digit_value(char32_t c);  // -1: no decimal digit

// text.strip(chars): of whitespace if `chars` is null.
enum class Side { both, left, right };
std::string_view strip(std::string_view text, Side side, const std::string* chars = nullptr);
std::vector<std::string_view> split_lines(std::string_view text, bool keep_ends);
std::vector<std::string_view> split_space(std::string_view text, int64_t most);
std::vector<std::string_view> split_space_right(std::string_view text, int64_t most);

}  // namespace consonant::jinja
