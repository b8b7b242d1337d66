// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/template.hpp"

#include "base/error.hpp"
#include "text/jinja/ast.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/parser.hpp"
#include "text/jinja/scopes.hpp"

namespace consonant::jinja {

namespace {

[[noreturn]] void report(const Failure& failure, int line) {
  if (failure.fault == Fault::refused) bad_input("the chat template refuses this (line {}): {}", line, failure.what());
  bad_input("chat template, line {}: {}", failure.line ? failure.line : line, failure.what());
}

}  // namespace

Compiled::Compiled(std::string_view source) {
  try {
    auto tree = std::make_unique<Template>();
    tree->body = Parser(tokenize(source)).parse();
    resolve_scopes(*tree);
    tree_ = std::move(tree);
  } catch (const Failure& failure) {
    report(failure, 1);
  }
}

Compiled::~Compiled() = default;
Compiled::Compiled(Compiled&&) noexcept = default;
Compiled& Compiled::operator=(Compiled&&) noexcept = default;

std::string Compiled::render(const nlohmann::ordered_json& variables, const LocalTime& now,
                             const Limits& limits) const {
  if (!variables.is_object()) bad_usage("the variables of a chat template must be an object");
  Interpreter in(*tree_, variables, now, limits);
  try {
    return in.run();
  } catch (const Failure& failure) {
    report(failure, in.line());
  }
}

}  // namespace consonant::jinja
