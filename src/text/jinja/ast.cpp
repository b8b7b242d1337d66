// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/ast.hpp"

namespace consonant::jinja {

const char* symbol(Op op) {
  static constexpr const char* names[] = {"+",   "-",  "*",  "/",  "//", "%",  "** or pow()", "-",  "+",  "not",
                                          "and", "or", "==", "!=", "<",  "<=", ">",           ">=", "in", "not in"};
  return names[static_cast<int>(op)];
}

namespace {

using Visit = std::function<void(Node&)>;

void one(const NodePtr& node, const Visit& visit) {
  if (node) visit(*node);
}

void all(const Body& nodes, const Visit& visit) {
  for (const NodePtr& node : nodes) visit(*node);
}

void arguments(const Arguments& a, const Visit& visit) {
  all(a.positional, visit);
  for (const auto& item : a.named) visit(*item.second);
  one(a.list, visit);
  one(a.dict, visit);
}

void macro(const MacroNode& node, const Visit& visit) {
  for (const auto& parameter : node.parameters) visit(*parameter);
  all(node.defaults, visit);
  all(node.body, visit);
}

void expression_children(Node& node, const Visit& visit) {
  switch (node.kind) {
    case NodeKind::list:
    case NodeKind::tuple:
      return all(static_cast<SequenceNode&>(node).items, visit);
    case NodeKind::dict:
      for (const auto& [key, value] : static_cast<DictNode&>(node).items) {
        visit(*key);
        visit(*value);
      }
      return;
    case NodeKind::unary:
      return visit(*static_cast<UnaryNode&>(node).operand);
    case NodeKind::binary:
    case NodeKind::logic:
      visit(*static_cast<BinaryNode&>(node).left);
      return visit(*static_cast<BinaryNode&>(node).right);
    case NodeKind::compare:
      visit(*static_cast<CompareNode&>(node).first);
      for (const auto& item : static_cast<CompareNode&>(node).rest) visit(*item.second);
      return;
    case NodeKind::concat:
      return all(static_cast<ConcatNode&>(node).parts, visit);
    case NodeKind::condition: {
      auto& n = static_cast<ConditionNode&>(node);
      visit(*n.test);
      visit(*n.yes);
      return one(n.no, visit);
    }
    case NodeKind::attribute:
      return visit(*static_cast<AttributeNode&>(node).object);
    case NodeKind::item:
      visit(*static_cast<ItemNode&>(node).object);
      return visit(*static_cast<ItemNode&>(node).key);
    case NodeKind::slice: {
      auto& n = static_cast<SliceNode&>(node);
      one(n.start, visit);
      one(n.stop, visit);
      return one(n.step, visit);
    }
    case NodeKind::call:
      visit(*static_cast<CallNode&>(node).callee);
      return arguments(static_cast<CallNode&>(node).arguments, visit);
    case NodeKind::filter:
    case NodeKind::test:
      one(static_cast<FilterNode&>(node).subject, visit);
      return arguments(static_cast<FilterNode&>(node).arguments, visit);
    default:
      return;
  }
}

}  // namespace

void for_each_child(Node& node, const Visit& visit) {
  switch (node.kind) {
    case NodeKind::output:
      return all(static_cast<OutputNode&>(node).parts, visit);
    case NodeKind::if_: {
      auto& n = static_cast<IfNode&>(node);
      for (const auto& branch : n.branches) {
        visit(*branch.test);
        all(branch.body, visit);
      }
      return all(n.otherwise, visit);
    }
    case NodeKind::for_: {
      auto& n = static_cast<ForNode&>(node);
      visit(*n.target);
      visit(*n.items);
      all(n.body, visit);
      all(n.otherwise, visit);
      return one(n.test, visit);
    }
    case NodeKind::set:
      visit(*static_cast<SetNode&>(node).target);
      return visit(*static_cast<SetNode&>(node).value);
    case NodeKind::set_block: {
      auto& n = static_cast<SetBlockNode&>(node);
      visit(*n.target);
      one(n.filter, visit);
      return all(n.body, visit);
    }
    case NodeKind::macro:
      return macro(static_cast<MacroNode&>(node), visit);
    case NodeKind::call_block: {
      auto& n = static_cast<CallBlockNode&>(node);
      one(n.call, visit);
      return macro(*n.caller, visit);
    }
    case NodeKind::filter_block: {
      auto& n = static_cast<FilterBlockNode&>(node);
      all(n.body, visit);
      return visit(*n.filter);
    }
    case NodeKind::with: {
      auto& n = static_cast<WithNode&>(node);
      all(n.targets, visit);
      all(n.values, visit);
      return all(n.body, visit);
    }
    default:
      return expression_children(node, visit);
  }
}

}  // namespace consonant::jinja
