// SPDX-License-Identifier: Apache-2.0
#include "engine/render.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/chat_template.hpp"

namespace consonant {

namespace {

constexpr int most_nested = 500;  // as a template's own values; what copies a document calls itself at each level

}

nlohmann::ordered_json template_variables(std::string_view text) {
  nlohmann::ordered_json json;
  const auto shallow = [](int depth, nlohmann::ordered_json::parse_event_t, const nlohmann::ordered_json&) {
    if (depth > most_nested) bad_input("the variables of the chat template are nested deeper than {}", most_nested);
    return true;
  };
  try {
    json = nlohmann::ordered_json::parse(text, shallow);
  } catch (const nlohmann::json::exception& error) {
    bad_input("the variables of the chat template are no JSON: {}", error.what());
  }
  if (!json.is_object())
    bad_input("the variables of the chat template have to be a JSON object, not {}", json.type_name());
  return json;
}

std::string render_template(std::string_view source, std::string_view variables, std::string_view now) {
  return ChatTemplate(source).render(template_variables(variables), {},
                                     now.empty() ? LocalTime::now() : LocalTime::parse(now));
}

}  // namespace consonant
