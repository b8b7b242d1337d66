// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace consonant {

struct Message {
  std::string role, content;
};

// A template's variables for a conversation, which may wait for the assistant, as JSON.
std::string chat_variables(const std::vector<Message>& messages, bool to_answer = true);

}  // namespace consonant
