// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.hpp"

#include "base/error.hpp"

namespace consonant {

std::string ChatTemplate::render(const nlohmann::ordered_json& variables, const TemplateTokens& tokens,
                                 const LocalTime& now) const {
  if (!variables.is_object()) bad_usage("the variables of a chat template must be an object");
  nlohmann::ordered_json all = variables;
  for (const auto& [name, text] : tokens)
    if (!all.contains(name)) all[name] = text;
  return template_.render(all, now);
}

}  // namespace consonant
