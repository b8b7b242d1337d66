// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "text/jinja/local_time.hpp"
#include "text/jinja/template.hpp"

namespace consonant {

// What a template may know of the tokenizer: "bos_token", "eos_token" and so on, with their text. A token that the
// model lacks stays out: templates ask whether it is defined.
using TemplateTokens = std::map<std::string, std::string>;

// Turns a conversation into the text that a model continues.
class ChatTemplate {
 public:
  explicit ChatTemplate(std::string_view source) : template_(source) {}

  // `variables`: "messages" (a list of {"role", "content", ...}), "add_generation_prompt", and what else the template
  // takes ("tools", "documents", "enable_thinking"); the order of keys counts, since templates print them. They win
  // over special tokens of the same name. What the template refuses is an Error (input) with its message.
  std::string render(const nlohmann::ordered_json& variables, const TemplateTokens& tokens,
                     const LocalTime& now = LocalTime::now()) const;

 private:
  jinja::Compiled template_;
};

}  // namespace consonant
