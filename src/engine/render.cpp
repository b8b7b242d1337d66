// SPDX-License-Identifier: Apache-2.0
#include "engine/render.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/chat_template.hpp"

namespace consonant {

std::string render_template(std::string_view source, std::string_view variables, std::string_view now) {
  nlohmann::ordered_json json;
  try {
    json = nlohmann::ordered_json::parse(variables);
  } catch (const nlohmann::json::exception& error) {
    bad_input("the variables of the chat template are no JSON: {}", error.what());
  }
  if (!json.is_object())
    bad_input("the variables of the chat template have to be a JSON object, not {}", json.type_name());
  return ChatTemplate(std::string(source)).render(json, {}, now.empty() ? LocalTime::now() : LocalTime::parse(now));
}

}  // namespace consonant
