// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace consonant {

// The text that the chat template `source` makes of `variables`, a JSON object, for those who have a template but no
// model. `now`: ISO time for the template's clock; empty: the real one.
std::string render_template(std::string_view source, std::string_view variables, std::string_view now);

}  // namespace consonant
