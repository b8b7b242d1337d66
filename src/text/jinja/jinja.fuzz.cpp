// SPDX-License-Identifier: Apache-2.0
// A template, and after a zero byte the variables as JSON; without these, a small conversation.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/jinja/template.hpp"

namespace {

using consonant::Error;
using consonant::Exit;
using Json = nlohmann::ordered_json;

const Json& conversation() {
  static const Json variables = Json::parse(R"({
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Grüße, 世界 "},
                 {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1.5}}}]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "n": 3, "s": "Hello World", "l": [3, 1, 2], "f": 0.25,
    "d": {"b": 1, "a": "x"}})");
  return variables;
}

// The text, or nothing where the template is refused, which must be as bad input.
std::string rendered(const consonant::jinja::Compiled& compiled, const Json& variables) {
  consonant::jinja::Limits limits;
  limits.output = size_t{1} << 20;
  limits.memory = size_t{64} << 20;
  limits.steps = 200'000;
  try {
    return compiled.render(variables, {2026, 1, 2, 3, 4, 5}, limits);
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
    return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(size ? reinterpret_cast<const char*>(data) : "", size);
  const size_t zero = input.find('\0');
  Json variables =
      zero == std::string_view::npos ? conversation() : Json::parse(input.substr(zero + 1), nullptr, false);
  if (!variables.is_object()) variables = conversation();
  try {
    const consonant::jinja::Compiled compiled(input.substr(0, zero));
    const std::string text = rendered(compiled, variables);
    if (!consonant::is_utf8(text) || rendered(compiled, variables) != text) std::abort();
  } catch (const Error& error) {
    if (error.exit() != Exit::input) std::abort();
  }
  return 0;
}
