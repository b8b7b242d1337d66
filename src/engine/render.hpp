// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace consonant {

// The variables of a chat template from the text of a JSON object; bad input for anything else, and for one that is
// nested out of all reason.
nlohmann::ordered_json template_variables(std::string_view text);

// The text that the chat template `source` makes of `variables`, a JSON object, for those who have a template but no
// model. `now`: ISO time for the template's clock; empty: the real one.
std::string render_template(std::string_view source, std::string_view variables, std::string_view now);

}  // namespace consonant
