// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace consonant {

using Json = nlohmann::json;

// JSON of a file that may be hostile: a key given twice, nesting deeper than 64 or text after the end is bad input that
// says where. `source` names the file.
Json parse_json(std::string_view text, std::string_view source);

}  // namespace consonant
