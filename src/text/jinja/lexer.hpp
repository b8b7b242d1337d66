// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace consonant::jinja {

enum class TokenKind : uint8_t {
  text,
  output_begin,
  output_end,
  block_begin,
  block_end,
  name,
  string,
  integer,
  real,
  op,
  end
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // of a string: its value; of an operator: its characters
  int64_t integer = 0;
  double real = 0;

  bool is_op(std::string_view op) const { return kind == TokenKind::op && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::name && text == name; }
};

// Splits a template as jinja2 does with trim_blocks and lstrip_blocks on. The last token is the end.
std::vector<Token> tokenize(std::string_view source);

// How an error calls the token.
std::string describe(const Token& token);

}  // namespace consonant::jinja
