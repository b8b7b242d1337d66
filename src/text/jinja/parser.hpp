// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/ast.hpp"
#include "text/jinja/lexer.hpp"

namespace consonant::jinja {

// Recursive descent over the tokens, with jinja2's grammar and its precedences.
class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}
  Body parse();

 private:
  // parse_statement.cpp
  Body statements(std::initializer_list<std::string_view> ends);  // up to one of the tags; it stays the token
  Body block(std::initializer_list<std::string_view> ends);       // after the tag that opened it
  Body block(std::string_view end);                               // takes the end tag too
  NodePtr statement();
  NodePtr parse_for();
  NodePtr parse_if();
  NodePtr parse_set();
  NodePtr parse_macro();
  NodePtr parse_call();
  NodePtr parse_generation();
  NodePtr parse_filter_block();
  NodePtr parse_with();
  NodePtr parse_print();
  NodePtr parse_loop_control();
  void signature(MacroNode& macro);
  Body function_body(std::string_view end);
  NodePtr target(std::string_view end, bool spaces, NameUse use);
  std::string target_name();

  // parse_expression.cpp
  NodePtr tuple(bool conditions = true, std::string_view end = "", bool in_parentheses = false);
  NodePtr simple_tuple(std::string_view end, bool spaces);
  NodePtr tuple_of(bool simple, bool conditions, bool spaces, std::string_view end, bool in_parentheses);
  NodePtr expression(bool conditions = true);
  NodePtr condition();
  NodePtr or_expression();
  NodePtr and_expression();
  NodePtr not_expression();
  NodePtr comparison();
  NodePtr sum();
  NodePtr concat();
  NodePtr product();
  NodePtr power();
  NodePtr unary(bool filters = true);
  NodePtr primary(bool spaces = false);
  NodePtr list();
  NodePtr dict();
  NodePtr postfix(NodePtr node);
  NodePtr filters_and_tests(NodePtr node);
  NodePtr subscript(NodePtr node);
  NodePtr subscript_part();
  NodePtr call(NodePtr callee);
  NodePtr filter(NodePtr subject, bool without_pipe = false);
  NodePtr test(NodePtr subject);
  Arguments arguments();

  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[at_ + (at_ + 1 < tokens_.size() ? 1 : 0)]; }
  const Token& take();
  bool skip_op(std::string_view op);
  bool skip_name(std::string_view name);
  const Token& expect(TokenKind kind, std::string_view what);
  void expect_op(std::string_view op);
  void expect_block_end();
  [[noreturn]] void unexpected(std::string_view wanted) const;

  // The recursion of the parser itself, which nested brackets drive before any node exists.
  class Deeper {
   public:
    explicit Deeper(Parser& p);
    ~Deeper() { --parser_.depth_; }

   private:
    Parser& parser_;
  };

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  int loops_ = 0;                                  // around the statement, within its function
  std::vector<std::pair<std::string, int>> open_;  // tags and their lines
};

}  // namespace consonant::jinja
