// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace consonant {

// `text` in Unicode's normal form C. It must be UTF-8. `storage` holds the result if that differs from `text`.
std::string_view normalize_nfc(std::string_view text, std::string& storage);

}  // namespace consonant
