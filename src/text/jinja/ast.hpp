// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/failure.hpp"

namespace consonant::jinja {

enum class NodeKind : uint8_t {
  // expressions
  constant,
  name,
  list,
  tuple,
  dict,
  unary,
  binary,
  logic,
  compare,
  concat,
  condition,
  attribute,
  item,
  slice,
  call,
  filter,
  test,
  space_attribute,
  // statements
  output,
  text,
  if_,
  for_,
  set,
  set_block,
  macro,
  call_block,
  filter_block,
  with,
  loop_control,
};

struct Node {
  Node(NodeKind kind, int line) : kind(kind), line(line) {}
  virtual ~Node() = default;
  const NodeKind kind;
  const int line;
  int depth = 1;  // levels of nodes below, itself included
};
using NodePtr = std::unique_ptr<Node>;
using Body = std::vector<NodePtr>;

// Where a variable lives: in the frame `hops` functions further out, at `slot`.
struct SlotRef {
  int hops = 0;
  int slot = -1;
};

// What happens to a variable of a scope when the scope is entered.
struct Load {
  enum class From { context, outer, nowhere };
  From from;
  int slot;
  std::string name;  // from the context
  SlotRef source;    // from an outer scope
};

struct Scope {
  std::vector<Load> loads;
  std::vector<int> clear;  // slots that are unset when the scope is left
};

struct ConstantNode : Node {
  using Data = std::variant<std::monostate, bool, int64_t, double, std::string>;
  ConstantNode(int line, Data d) : Node(NodeKind::constant, line), data(std::move(d)) {}
  const Data data;
};

enum class NameUse { load, store, parameter };
struct NameNode : Node {
  NameNode(int line, std::string n, NameUse u) : Node(NodeKind::name, line), name(std::move(n)), use(u) {}
  const std::string name;
  NameUse use;
  SlotRef ref;
};

// `ns.attribute` as the target of an assignment.
struct SpaceAttributeNode : Node {
  SpaceAttributeNode(int line, std::string n, std::string a)
      : Node(NodeKind::space_attribute, line), name(std::move(n)), attribute(std::move(a)) {}
  const std::string name, attribute;
  SlotRef ref;
};

struct SequenceNode : Node {  // [..] and (..)
  SequenceNode(NodeKind kind, int line, Body i) : Node(kind, line), items(std::move(i)) {}
  Body items;
};

struct DictNode : Node {
  explicit DictNode(int line) : Node(NodeKind::dict, line) {}
  std::vector<std::pair<NodePtr, NodePtr>> items;
};

enum class Op : uint8_t {
  add,
  sub,
  mul,
  div,
  floordiv,
  mod,
  pow,
  neg,
  pos,
  not_,
  and_,
  or_,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  in,
  not_in
};
const char* symbol(Op op);

struct UnaryNode : Node {
  UnaryNode(int line, Op o, NodePtr n) : Node(NodeKind::unary, line), op(o), operand(std::move(n)) {}
  const Op op;
  NodePtr operand;
};

struct BinaryNode : Node {  // arithmetic, and `and`, `or`
  BinaryNode(NodeKind kind, int line, Op o, NodePtr l, NodePtr r)
      : Node(kind, line), op(o), left(std::move(l)), right(std::move(r)) {}
  const Op op;
  NodePtr left, right;
};

struct CompareNode : Node {  // a < b < c
  CompareNode(int line, NodePtr f) : Node(NodeKind::compare, line), first(std::move(f)) {}
  NodePtr first;
  std::vector<std::pair<Op, NodePtr>> rest;
};

struct ConcatNode : Node {
  explicit ConcatNode(int line) : Node(NodeKind::concat, line) {}
  Body parts;
};

struct ConditionNode : Node {
  ConditionNode(int line, NodePtr t, NodePtr y, NodePtr n)
      : Node(NodeKind::condition, line), test(std::move(t)), yes(std::move(y)), no(std::move(n)) {}
  NodePtr test, yes, no;  // `no` may be null
};

struct AttributeNode : Node {
  AttributeNode(int line, NodePtr o, std::string n)
      : Node(NodeKind::attribute, line), object(std::move(o)), name(std::move(n)) {}
  NodePtr object;
  const std::string name;
};

struct ItemNode : Node {
  ItemNode(int line, NodePtr o, NodePtr k) : Node(NodeKind::item, line), object(std::move(o)), key(std::move(k)) {}
  NodePtr object, key;
};

struct SliceNode : Node {  // only as the key of an ItemNode; each may be null
  explicit SliceNode(int line) : Node(NodeKind::slice, line) {}
  NodePtr start, stop, step;
};

struct Arguments {
  Body positional;
  std::vector<std::pair<std::string, NodePtr>> named;
  NodePtr list, dict;  // *list, **dict
};

struct CallNode : Node {
  CallNode(int line, NodePtr c, Arguments a)
      : Node(NodeKind::call, line), callee(std::move(c)), arguments(std::move(a)) {}
  NodePtr callee;
  Arguments arguments;
};

struct FilterNode : Node {  // and a test
  FilterNode(NodeKind kind, int line, NodePtr s, std::string n, Arguments a)
      : Node(kind, line), subject(std::move(s)), name(std::move(n)), arguments(std::move(a)) {}
  NodePtr subject;  // null: the text of the block around it
  const std::string name;
  Arguments arguments;
};

struct TextNode : Node {
  TextNode(int line, std::string t) : Node(NodeKind::text, line), text(std::move(t)) {}
  const std::string text;
};

struct OutputNode : Node {
  explicit OutputNode(int line) : Node(NodeKind::output, line) {}
  Body parts;
};

struct IfNode : Node {
  explicit IfNode(int line) : Node(NodeKind::if_, line) {}
  struct Branch {
    int line;
    NodePtr test;
    Body body;
  };
  std::vector<Branch> branches;
  Body otherwise;
};

struct ForNode : Node {
  explicit ForNode(int line) : Node(NodeKind::for_, line) {}
  NodePtr target, items, test;  // `test` may be null
  NodePtr test_target;          // the target once more, as the test sees it
  Body body, otherwise;
  bool recursive = false;
  Scope body_scope, test_scope, else_scope;
  int loop_slot = -1;  // of `loop`, where the body uses it
  int slots = 0;       // of a recursive loop, which is a function
};

struct SetNode : Node {
  SetNode(int line, NodePtr t, NodePtr v) : Node(NodeKind::set, line), target(std::move(t)), value(std::move(v)) {}
  NodePtr target, value;
};

struct SetBlockNode : Node {
  explicit SetBlockNode(int line) : Node(NodeKind::set_block, line) {}
  NodePtr target, filter;  // `filter` may be null
  Body body;
  Scope scope;
};

struct MacroNode : Node {  // and the body of a call block
  MacroNode(NodeKind kind, int line) : Node(kind, line) {}
  std::string name;
  SlotRef ref;  // of the variable with the macro's name
  std::vector<std::unique_ptr<NameNode>> parameters;
  Body defaults;  // of the last parameters
  Body body;
  Scope scope;
  int slots = 0;
  int caller_slot = -1, kwargs_slot = -1, varargs_slot = -1;  // where the body uses them
  bool has_caller_parameter = false, uses_caller = false;
};

struct CallBlockNode : Node {
  explicit CallBlockNode(int line) : Node(NodeKind::call_block, line) {}
  NodePtr call;  // null: {% generation %}, which is its body's text
  std::unique_ptr<MacroNode> caller;
};

struct FilterBlockNode : Node {
  explicit FilterBlockNode(int line) : Node(NodeKind::filter_block, line) {}
  Body body;
  NodePtr filter;
  Scope scope;
};

struct WithNode : Node {
  explicit WithNode(int line) : Node(NodeKind::with, line) {}
  Body targets, values, body;
  Scope scope;
};

struct LoopControlNode : Node {
  LoopControlNode(int line, bool b) : Node(NodeKind::loop_control, line), is_break(b) {}
  const bool is_break;
};

struct Template {
  Body body;
  Scope scope;
  int slots = 0;
};

// Calls `visit` for each child, in the order in which jinja2 visits them.
void for_each_child(Node& node, const std::function<void(Node&)>& visit);

// Sets the depth from the children's; too deep is a syntax error. Everything that walks the tree recurses.
template <class T>
std::unique_ptr<T> finished(std::unique_ptr<T> node) {
  for_each_child(*node, [&](Node& child) { node->depth = std::max(node->depth, child.depth + 1); });
  if (node->depth > max_node_depth)
    fail_at(node->line, "expressions or blocks nested deeper than {} levels", max_node_depth);
  return node;
}

}  // namespace consonant::jinja
