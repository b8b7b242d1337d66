// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "text/jinja/parser.hpp"

namespace consonant::jinja {

Body Parser::parse() { return statements({}); }

// Text, outputs and tags, up to (not with) a tag of `ends`; to the end of the template if there are none.
Body Parser::statements(std::initializer_list<std::string_view> ends) {
  Body body;
  std::unique_ptr<OutputNode> output;
  const auto flush = [&] {
    if (output) body.push_back(finished(std::move(output)));
    output = nullptr;
  };
  const auto add = [&](NodePtr part) {
    if (!output) output = std::make_unique<OutputNode>(part->line);
    output->parts.push_back(std::move(part));
  };
  for (;;) {
    const Token& token = now();
    if (token.kind == TokenKind::text) {
      add(std::make_unique<TextNode>(token.line, token.text));
      take();
    } else if (token.kind == TokenKind::output_begin) {
      take();
      add(tuple());
      expect(TokenKind::output_end, "'}}'");
    } else if (token.kind == TokenKind::block_begin) {
      flush();
      take();
      for (const auto end : ends)
        if (now().is_name(end)) return body;
      body.push_back(statement());
      expect(TokenKind::block_end, "'%}'");
    } else {
      flush();
      if (ends.size() == 0) return body;
      fail_at(token.line, "the template ends within {{% {} %}} of line {}", open_.back().first, open_.back().second);
    }
  }
}

Body Parser::block(std::initializer_list<std::string_view> ends) {
  Deeper deeper(*this);
  skip_op(":");
  expect(TokenKind::block_end, "'%}'");
  return statements(ends);
}

Body Parser::block(std::string_view end) {
  Body body = block({end});
  take();
  return body;
}

NodePtr Parser::statement() {
  struct Tag {
    std::string_view name;
    NodePtr (Parser::*parse)();
  };
  static constexpr Tag tags[] = {{"for", &Parser::parse_for},
                                 {"if", &Parser::parse_if},
                                 {"set", &Parser::parse_set},
                                 {"macro", &Parser::parse_macro},
                                 {"call", &Parser::parse_call},
                                 {"generation", &Parser::parse_generation},
                                 {"filter", &Parser::parse_filter_block},
                                 {"with", &Parser::parse_with},
                                 {"print", &Parser::parse_print},
                                 {"break", &Parser::parse_loop_control},
                                 {"continue", &Parser::parse_loop_control}};
  if (now().kind != TokenKind::name) unexpected("the name of a tag");
  const std::string name = now().text;
  const int line = now().line;
  for (const Tag& tag : tags) {
    if (name != tag.name) continue;
    open_.emplace_back(name, line);
    NodePtr node = (this->*tag.parse)();
    open_.pop_back();
    return node;
  }
  for (const auto other : {"include", "import", "from", "extends", "block", "autoescape"})
    if (name == other)
      fail_at(line, "{{% {} %}} isn't supported: a chat template stands alone and is plain text", name);
  if (open_.empty()) fail_at(line, "unknown tag {{% {} %}}", name);
  fail_at(line, "unknown tag {{% {} %}} within {{% {} %}} of line {}", name, open_.back().first, open_.back().second);
}

namespace {

bool can_assign(const Node& node) {
  if (node.kind == NodeKind::name || node.kind == NodeKind::space_attribute) return true;
  if (node.kind != NodeKind::tuple) return false;
  const auto& items = static_cast<const SequenceNode&>(node).items;
  return std::all_of(items.begin(), items.end(), [](const NodePtr& item) { return can_assign(*item); });
}

void set_use(Node& node, NameUse use) {
  if (node.kind == NodeKind::name) static_cast<NameNode&>(node).use = use;
  if (node.kind == NodeKind::tuple)
    for (const NodePtr& item : static_cast<SequenceNode&>(node).items) set_use(*item, use);
}

NodePtr copy_target(const Node& node) {
  if (node.kind == NodeKind::name) {
    const auto& name = static_cast<const NameNode&>(node);
    return std::make_unique<NameNode>(name.line, name.name, name.use);
  }
  Body items;
  for (const NodePtr& item : static_cast<const SequenceNode&>(node).items) items.push_back(copy_target(*item));
  return finished(std::make_unique<SequenceNode>(NodeKind::tuple, node.line, std::move(items)));
}

}  // namespace

// What is assigned to: a name, names with commas between, and with `spaces` attributes of namespaces.
NodePtr Parser::target(std::string_view end, bool spaces, NameUse use) {
  NodePtr node = simple_tuple(end, spaces);
  if (!can_assign(*node)) fail_at(node->line, "this can't be assigned to");
  set_use(*node, use);
  return node;
}

std::string Parser::target_name() {
  const Token& token = expect(TokenKind::name, "a name");
  for (const auto word : {"true", "false", "none", "True", "False", "None"})
    if (token.text == word) fail_at(token.line, "'{}' can't be assigned to", word);
  return token.text;
}

NodePtr Parser::parse_for() {
  auto node = std::make_unique<ForNode>(take().line);
  node->target = target("in", false, NameUse::store);
  if (!skip_name("in")) unexpected("'in'");
  node->items = tuple(false, "recursive");
  if (skip_name("if")) {
    node->test = expression();
    node->test_target = copy_target(*node->target);
  }
  node->recursive = skip_name("recursive");
  ++loops_;
  node->body = block({"endfor", "else"});
  --loops_;
  if (take().text == "else") node->otherwise = block("endfor");
  return finished(std::move(node));
}

NodePtr Parser::parse_if() {
  auto node = std::make_unique<IfNode>(now().line);
  do {
    const int line = take().line;
    NodePtr test = tuple(false);
    node->branches.push_back({line, std::move(test), block({"elif", "else", "endif"})});
  } while (now().is_name("elif"));
  if (take().text == "else") node->otherwise = block("endif");
  return finished(std::move(node));
}

NodePtr Parser::parse_set() {
  const int line = take().line;
  NodePtr to = target("", true, NameUse::store);
  if (skip_op("=")) return finished(std::make_unique<SetNode>(line, std::move(to), tuple()));
  auto node = std::make_unique<SetBlockNode>(line);
  node->target = std::move(to);
  node->filter = filter(nullptr);
  node->body = block("endset");
  return finished(std::move(node));
}

void Parser::signature(MacroNode& macro) {
  expect_op("(");
  while (!now().is_op(")")) {
    if (!macro.parameters.empty()) expect_op(",");
    const int line = now().line;
    const std::string name = target_name();
    for (const auto& other : macro.parameters)
      if (other->name == name) fail_at(line, "the parameter '{}' is there twice", name);
    macro.parameters.push_back(std::make_unique<NameNode>(line, name, NameUse::parameter));
    if (skip_op("="))
      macro.defaults.push_back(expression());
    else if (!macro.defaults.empty())
      fail_at(line, "the parameter '{}' without a default follows one with a default", name);
  }
  expect_op(")");
}

// The body of what becomes a function: `break` and `continue` don't reach out of it.
Body Parser::function_body(std::string_view end) {
  const int loops = std::exchange(loops_, 0);
  Body body = block(end);
  loops_ = loops;
  return body;
}

NodePtr Parser::parse_macro() {
  auto node = std::make_unique<MacroNode>(NodeKind::macro, take().line);
  node->name = target_name();
  signature(*node);
  node->body = function_body("endmacro");
  return finished(std::move(node));
}

NodePtr Parser::parse_call() {
  const int line = take().line;
  auto node = std::make_unique<CallBlockNode>(line);
  node->caller = std::make_unique<MacroNode>(NodeKind::macro, line);
  if (now().is_op("(")) signature(*node->caller);
  node->call = expression();
  if (node->call->kind != NodeKind::call) fail_at(line, "{{% call %}} needs a call");
  node->caller->body = function_body("endcall");
  return finished(std::move(node));
}

// transformers' own tag: it marks what the model wrote and changes nothing in the text.
NodePtr Parser::parse_generation() {
  const int line = take().line;
  auto node = std::make_unique<CallBlockNode>(line);
  node->caller = std::make_unique<MacroNode>(NodeKind::macro, line);
  node->caller->body = function_body("endgeneration");
  return finished(std::move(node));
}

NodePtr Parser::parse_filter_block() {
  auto node = std::make_unique<FilterBlockNode>(take().line);
  node->filter = filter(nullptr, true);
  node->body = block("endfilter");
  return finished(std::move(node));
}

NodePtr Parser::parse_with() {
  auto node = std::make_unique<WithNode>(take().line);
  while (now().kind != TokenKind::block_end) {
    if (!node->targets.empty()) expect_op(",");
    const int line = now().line;
    NodePtr to = target("", false, NameUse::parameter);
    node->targets.push_back(std::move(to));
    if (!skip_op("=")) fail_at(line, "{{% with %}} needs '=' and a value after each name");
    node->values.push_back(expression());
  }
  node->body = block("endwith");
  return finished(std::move(node));
}

NodePtr Parser::parse_print() {
  auto node = std::make_unique<OutputNode>(take().line);
  while (now().kind != TokenKind::block_end) {
    if (!node->parts.empty()) expect_op(",");
    node->parts.push_back(expression());
  }
  return finished(std::move(node));
}

NodePtr Parser::parse_loop_control() {
  const Token& token = take();
  if (loops_ == 0) fail_at(token.line, "{{% {} %}} outside of a loop", token.text);
  return std::make_unique<LoopControlNode>(token.line, token.text == "break");
}

}  // namespace consonant::jinja
