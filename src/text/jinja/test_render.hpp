// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "text/jinja/template.hpp"

namespace consonant::jinja {

// What the templates of the tests can use.
inline const nlohmann::ordered_json& test_variables() {
  static const auto variables = nlohmann::ordered_json::parse(R"json({
    "s": "Hello World", "u": "Grüße, 世界 👋🏽\n x", "e": "", "n": 5, "z": 0, "f": 2.5, "neg": -3, "t": true, "no": null,
    "l": [3, 1, 2], "ls": ["b", "A", "c", "a"], "d": {"b": 1, "a": "x", "items": 7, "n": null},
    "ld": [{"k": "x", "v": 1}, {"k": "y", "v": 2}, {"k": "x", "v": 3.5}], "nest": {"a": {"b": [1, {"c": "deep"}]}},
    "el": [], "ed": {}, "h": "<a href=\"x\">'&'</a>", "ws": "  pad \t\n",
    "m": "line1\nline2\r\nline3\u000bq\u2028z", "bigf": 1e22, "smallf": 1.5e-7})json");
  return variables;
}

inline std::string render(const std::string& source, const nlohmann::ordered_json& variables = test_variables(),
                          const Limits& limits = {}) {
  return Compiled(source).render(variables, {2026, 1, 2, 3, 4, 5}, limits);
}

// The message with which the template is refused.
inline std::string refusal(const std::string& source, const nlohmann::ordered_json& variables = test_variables(),
                           const Limits& limits = {}) {
  try {
    const std::string text = render(source, variables, limits);
    ADD_FAILURE() << source << " gave: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input) << source;
    return error.what();
  }
  return {};
}

inline void expect_texts(std::initializer_list<std::pair<const char*, const char*>> cases) {
  for (const auto& [source, text] : cases) {
    try {
      EXPECT_EQ(render(source), text) << source;
    } catch (const Error& error) {
      ADD_FAILURE() << source << " was refused: " << error.what();
    }
  }
}

// Each message names a line.
inline void expect_refused(std::initializer_list<const char*> sources) {
  for (const char* source : sources) EXPECT_THAT(refusal(source), ::testing::HasSubstr("line ")) << source;
}

}  // namespace consonant::jinja
