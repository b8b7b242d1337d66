// SPDX-License-Identifier: Apache-2.0
#include "cli/messages.hpp"

#include <nlohmann/json.hpp>

namespace consonant {

std::string chat_variables(const std::vector<Message>& messages, bool to_answer) {
  nlohmann::ordered_json json;
  json["messages"] = nlohmann::ordered_json::array();
  for (const Message& m : messages) json["messages"].push_back({{"role", m.role}, {"content", m.content}});
  json["add_generation_prompt"] = to_answer;
  return json.dump();
}

}  // namespace consonant
