// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace consonant {

// ISO 639-1 code (or Whisper's own for the few without one) of a language given by code or English name in any case;
// empty if it is neither.
std::string language_code(std::string_view name);

}  // namespace consonant
