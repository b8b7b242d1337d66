// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parser.hpp"

namespace consonant::jinja {

Parser::Deeper::Deeper(Parser& p) : parser_(p) {
  if (p.depth_ >= max_parse_depth) fail_at(p.now().line, "brackets or blocks nested too deep");
  ++p.depth_;
}

const Token& Parser::take() {
  const Token& token = tokens_[at_];
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool Parser::skip_op(std::string_view op) {
  if (!now().is_op(op)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view name) {
  if (!now().is_name(name)) return false;
  take();
  return true;
}

void Parser::unexpected(std::string_view wanted) const {
  fail_at(now().line, "expected {}, found {}", wanted, describe(now()));
}

const Token& Parser::expect(TokenKind kind, std::string_view what) {
  if (now().kind != kind) unexpected(what);
  return take();
}

void Parser::expect_op(std::string_view op) {
  if (!skip_op(op)) unexpected(fmt::format("'{}'", op));
}

NodePtr Parser::tuple(bool conditions, std::string_view end, bool in_parentheses) {
  return tuple_of(false, conditions, false, end, in_parentheses);
}

NodePtr Parser::simple_tuple(std::string_view end, bool spaces) { return tuple_of(true, false, spaces, end, false); }

// One expression, or several with commas between, which make a tuple. `simple`: only names and literals.
NodePtr Parser::tuple_of(bool simple, bool conditions, bool spaces, std::string_view end, bool in_parentheses) {
  int line = now().line;
  Body items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect_op(",");
    const TokenKind kind = now().kind;
    if (kind == TokenKind::output_end || kind == TokenKind::block_end || now().is_op(")") ||
        (!end.empty() && now().is_name(end)))
      break;
    items.push_back(simple ? primary(spaces) : expression(conditions));
    if (!now().is_op(",")) break;
    is_tuple = true;
    line = now().line;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items.front());
    if (!in_parentheses) unexpected("an expression");
  }
  return finished(std::make_unique<SequenceNode>(NodeKind::tuple, line, std::move(items)));
}

NodePtr Parser::expression(bool conditions) {
  Deeper deeper(*this);
  return conditions ? condition() : or_expression();
}

NodePtr Parser::condition() {
  Deeper deeper(*this);  // `a if b else c if d else ...`
  int line = now().line;
  NodePtr yes = or_expression();
  while (skip_name("if")) {
    NodePtr test = or_expression();
    NodePtr no = skip_name("else") ? condition() : nullptr;
    yes = finished(std::make_unique<ConditionNode>(line, std::move(test), std::move(yes), std::move(no)));
    line = now().line;
  }
  return yes;
}

NodePtr Parser::or_expression() {
  int line = now().line;
  NodePtr left = and_expression();
  while (skip_name("or")) {
    NodePtr right = and_expression();
    left = finished(std::make_unique<BinaryNode>(NodeKind::logic, line, Op::or_, std::move(left), std::move(right)));
    line = now().line;
  }
  return left;
}

NodePtr Parser::and_expression() {
  int line = now().line;
  NodePtr left = not_expression();
  while (skip_name("and")) {
    NodePtr right = not_expression();
    left = finished(std::make_unique<BinaryNode>(NodeKind::logic, line, Op::and_, std::move(left), std::move(right)));
    line = now().line;
  }
  return left;
}

NodePtr Parser::not_expression() {
  if (!now().is_name("not")) return comparison();
  Deeper deeper(*this);
  const int line = take().line;
  return finished(std::make_unique<UnaryNode>(line, Op::not_, not_expression()));
}

NodePtr Parser::comparison() {
  static constexpr std::pair<std::string_view, Op> ops[] = {{"==", Op::eq}, {"!=", Op::ne}, {"<", Op::lt},
                                                            {"<=", Op::le}, {">", Op::gt},  {">=", Op::ge}};
  const int line = now().line;
  NodePtr first = sum();
  std::unique_ptr<CompareNode> node;
  for (;;) {
    Op op = Op::not_;
    for (const auto& [text, o] : ops)
      if (now().is_op(text)) op = o;
    if (now().is_name("in")) op = Op::in;
    if (now().is_name("not") && ahead().is_name("in")) op = Op::not_in;
    if (op == Op::not_) break;
    take();
    if (op == Op::not_in) take();
    if (!node) node = std::make_unique<CompareNode>(line, std::move(first));
    node->rest.emplace_back(op, sum());
  }
  if (!node) return first;
  return finished(std::move(node));
}

NodePtr Parser::sum() {
  int line = now().line;
  NodePtr left = concat();
  while (now().is_op("+") || now().is_op("-")) {
    const Op op = take().text == "+" ? Op::add : Op::sub;
    NodePtr right = concat();
    left = finished(std::make_unique<BinaryNode>(NodeKind::binary, line, op, std::move(left), std::move(right)));
    line = now().line;
  }
  return left;
}

NodePtr Parser::concat() {
  const int line = now().line;
  NodePtr first = product();
  if (!now().is_op("~")) return first;
  auto node = std::make_unique<ConcatNode>(line);
  node->parts.push_back(std::move(first));
  while (skip_op("~")) node->parts.push_back(product());
  return finished(std::move(node));
}

NodePtr Parser::product() {
  static constexpr std::pair<std::string_view, Op> ops[] = {
      {"*", Op::mul}, {"/", Op::div}, {"//", Op::floordiv}, {"%", Op::mod}};
  int line = now().line;
  NodePtr left = power();
  for (;;) {
    Op op = Op::not_;
    for (const auto& [text, o] : ops)
      if (now().is_op(text)) op = o;
    if (op == Op::not_) return left;
    take();
    NodePtr right = power();
    left = finished(std::make_unique<BinaryNode>(NodeKind::binary, line, op, std::move(left), std::move(right)));
    line = now().line;
  }
}

// Unlike Python's, jinja2's power binds to the left, and weaker than a minus sign before it.
NodePtr Parser::power() {
  int line = now().line;
  NodePtr left = unary();
  while (skip_op("**")) {
    NodePtr right = unary();
    left = finished(std::make_unique<BinaryNode>(NodeKind::binary, line, Op::pow, std::move(left), std::move(right)));
    line = now().line;
  }
  return left;
}

NodePtr Parser::unary(bool filters) {
  Deeper deeper(*this);
  const int line = now().line;
  NodePtr node;
  if (skip_op("-"))
    node = finished(std::make_unique<UnaryNode>(line, Op::neg, unary(false)));
  else if (skip_op("+"))
    node = finished(std::make_unique<UnaryNode>(line, Op::pos, unary(false)));
  else
    node = primary();
  node = postfix(std::move(node));
  return filters ? filters_and_tests(std::move(node)) : std::move(node);
}

NodePtr Parser::primary(bool spaces) {
  const Token& token = now();
  const int line = token.line;
  switch (token.kind) {
    case TokenKind::name: {
      const std::string name = take().text;
      if (name == "true" || name == "True") return std::make_unique<ConstantNode>(line, true);
      if (name == "false" || name == "False") return std::make_unique<ConstantNode>(line, false);
      if (name == "none" || name == "None") return std::make_unique<ConstantNode>(line, std::monostate());
      if (spaces && skip_op("."))
        return std::make_unique<SpaceAttributeNode>(line, name, expect(TokenKind::name, "a name").text);
      return std::make_unique<NameNode>(line, name, NameUse::load);
    }
    case TokenKind::string: {
      std::string text;
      while (now().kind == TokenKind::string) text += take().text;
      return std::make_unique<ConstantNode>(line, std::move(text));
    }
    case TokenKind::integer:
      return std::make_unique<ConstantNode>(line, take().integer);
    case TokenKind::real:
      return std::make_unique<ConstantNode>(line, take().real);
    default:
      break;
  }
  Deeper deeper(*this);
  if (skip_op("(")) {
    NodePtr node = tuple(true, "", true);
    expect_op(")");
    return node;
  }
  if (token.is_op("[")) return list();
  if (token.is_op("{")) return dict();
  unexpected("an expression");
}

NodePtr Parser::list() {
  const int line = take().line;
  Body items;
  while (!now().is_op("]")) {
    if (!items.empty()) expect_op(",");
    if (now().is_op("]")) break;
    items.push_back(expression());
  }
  expect_op("]");
  return finished(std::make_unique<SequenceNode>(NodeKind::list, line, std::move(items)));
}

NodePtr Parser::dict() {
  auto node = std::make_unique<DictNode>(take().line);
  while (!now().is_op("}")) {
    if (!node->items.empty()) expect_op(",");
    if (now().is_op("}")) break;
    NodePtr key = expression();
    expect_op(":");
    NodePtr value = expression();
    node->items.emplace_back(std::move(key), std::move(value));
  }
  expect_op("}");
  return finished(std::move(node));
}

NodePtr Parser::postfix(NodePtr node) {
  for (;;) {
    if (now().is_op(".") || now().is_op("["))
      node = subscript(std::move(node));
    else if (now().is_op("("))
      node = call(std::move(node));
    else
      return node;
  }
}

NodePtr Parser::filters_and_tests(NodePtr node) {
  for (;;) {
    if (now().is_op("|"))
      node = filter(std::move(node));
    else if (now().is_name("is"))
      node = test(std::move(node));
    else if (now().is_op("("))
      node = call(std::move(node));
    else
      return node;
  }
}

NodePtr Parser::subscript(NodePtr node) {
  const Token& token = take();
  const int line = token.line;
  if (token.text == ".") {
    if (now().kind == TokenKind::name)
      return finished(std::make_unique<AttributeNode>(line, std::move(node), take().text));
    if (now().kind != TokenKind::integer) unexpected("a name or a number");
    NodePtr key = std::make_unique<ConstantNode>(now().line, now().integer);
    take();
    return finished(std::make_unique<ItemNode>(line, std::move(node), std::move(key)));
  }
  Body keys;
  while (!now().is_op("]")) {
    if (!keys.empty()) expect_op(",");
    keys.push_back(subscript_part());
  }
  expect_op("]");
  if (keys.size() == 1) return finished(std::make_unique<ItemNode>(line, std::move(node), std::move(keys.front())));
  for (const NodePtr& key : keys)
    if (key->kind == NodeKind::slice) fail_at(line, "a slice among several subscripts isn't supported");
  NodePtr key = finished(std::make_unique<SequenceNode>(NodeKind::tuple, line, std::move(keys)));
  return finished(std::make_unique<ItemNode>(line, std::move(node), std::move(key)));
}

NodePtr Parser::subscript_part() {
  auto slice = std::make_unique<SliceNode>(now().line);
  const auto ends = [&] { return now().is_op("]") || now().is_op(","); };
  if (!skip_op(":")) {
    NodePtr node = expression();
    if (!skip_op(":")) return node;
    slice->start = std::move(node);
  }
  if (!now().is_op(":") && !ends()) slice->stop = expression();
  if (skip_op(":") && !ends()) slice->step = expression();
  return finished(std::move(slice));
}

Arguments Parser::arguments() {
  const int line = now().line;
  expect_op("(");
  Arguments a;
  const auto ensure = [&](bool ok) {
    if (!ok) fail_at(line, "invalid order of arguments in a call");
  };
  bool comma = false;
  while (!now().is_op(")")) {
    if (comma) {
      expect_op(",");
      if (now().is_op(")")) break;
    }
    if (skip_op("*")) {
      ensure(!a.list && !a.dict);
      a.list = expression();
    } else if (skip_op("**")) {
      ensure(!a.dict);
      a.dict = expression();
    } else if (now().kind == TokenKind::name && ahead().is_op("=")) {
      ensure(!a.dict);
      const std::string name = take().text;
      take();
      for (const auto& named : a.named)
        if (named.first == name) fail_at(line, "the argument '{}' is given twice", name);
      a.named.emplace_back(name, expression());
    } else {
      ensure(!a.list && !a.dict && a.named.empty());
      a.positional.push_back(expression());
    }
    comma = true;
  }
  expect_op(")");
  return a;
}

NodePtr Parser::call(NodePtr callee) {
  const int line = now().line;
  return finished(std::make_unique<CallNode>(line, std::move(callee), arguments()));
}

// One filter or several; the first without its pipe in {% filter name %}.
NodePtr Parser::filter(NodePtr subject, bool without_pipe) {
  while (now().is_op("|") || without_pipe) {
    if (!without_pipe) take();
    const Token& token = expect(TokenKind::name, "the name of a filter");
    const int line = token.line;
    std::string name = token.text;
    while (skip_op(".")) name += "." + expect(TokenKind::name, "the name of a filter").text;
    Arguments a = now().is_op("(") ? arguments() : Arguments();
    subject = finished(std::make_unique<FilterNode>(NodeKind::filter, line, std::move(subject), name, std::move(a)));
    without_pipe = false;
  }
  return subject;
}

NodePtr Parser::test(NodePtr subject) {
  const int line = take().line;
  const bool negated = skip_name("not");
  std::string name = expect(TokenKind::name, "the name of a test").text;
  while (skip_op(".")) name += "." + expect(TokenKind::name, "the name of a test").text;
  Arguments a;
  const Token& token = now();
  const bool starts_argument = token.kind == TokenKind::name || token.kind == TokenKind::string ||
                               token.kind == TokenKind::integer || token.kind == TokenKind::real || token.is_op("[") ||
                               token.is_op("{");
  if (token.is_op("(")) {
    a = arguments();
  } else if (starts_argument && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) fail_at(token.line, "tests can't be chained with `is`");
    a.positional.push_back(postfix(primary()));
  }
  NodePtr node = finished(std::make_unique<FilterNode>(NodeKind::test, line, std::move(subject), name, std::move(a)));
  if (negated) node = finished(std::make_unique<UnaryNode>(line, Op::not_, std::move(node)));
  return node;
}

}  // namespace consonant::jinja
