// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace consonant {

// The whole of a file; bad input if it can't be read.
std::string read_file(const std::string& path);

// The same; bad input as well if it isn't UTF-8: says at which byte.
std::string read_text(const std::string& path);

// Bad input if `text` isn't UTF-8; `source` says what it is, for the message.
void require_utf8(std::string_view text, std::string_view source);

// Token ids, separated by white space, commas or the brackets of a JSON array.
std::vector<int32_t> parse_tokens(std::string_view text, std::string_view source);

}  // namespace consonant
