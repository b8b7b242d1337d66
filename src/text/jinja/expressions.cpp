// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/interpreter.hpp"
#include "text/jinja/nesting.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/print.hpp"

namespace consonant::jinja {

Value& Interpreter::slot(SlotRef ref) {
  Frame* frame = frame_.get();
  for (int i = 0; i < ref.hops; ++i) frame = frame->outer.get();
  return frame->slots[static_cast<size_t>(ref.slot)];
}

// A variable that the caller gave, or a global; missing if there is neither.
Value Interpreter::resolve(const std::string& name) {
  if (const auto it = context_.find(name); it != context_.end()) return it->second;
  Value value;
  if (name == "self") fail(Fault::unsupported, "`self` isn't supported: a chat template has no blocks");
  if (const auto it = variables_.find(name); it != variables_.end())
    value = heap.from_json(*it);
  else
    value = global(*this, name);
  context_.emplace(name, value);
  return value;
}

Value Interpreter::eval(const Node& node) {
  const Nesting nesting(depth_, heap.limits.call_depth);
  heap.spend(1);
  const int outer_line = std::exchange(line_, node.line);
  Value v = eval_node(node);
  line_ = outer_line;
  return v;
}

Value Interpreter::eval_node(const Node& node) {
  switch (node.kind) {
    case NodeKind::constant:
      return eval_constant(static_cast<const ConstantNode&>(node));
    case NodeKind::text:
      return heap.string(static_cast<const TextNode&>(node).text);
    case NodeKind::name:
      return eval_name(static_cast<const NameNode&>(node));
    case NodeKind::list:
    case NodeKind::tuple:
      return eval_sequence(static_cast<const SequenceNode&>(node));
    case NodeKind::dict:
      return eval_dict(static_cast<const DictNode&>(node));
    case NodeKind::unary:
      return eval_unary(static_cast<const UnaryNode&>(node));
    case NodeKind::binary:
      return eval_binary(static_cast<const BinaryNode&>(node));
    case NodeKind::logic:
      return eval_logic(static_cast<const BinaryNode&>(node));
    case NodeKind::compare:
      return eval_compare(static_cast<const CompareNode&>(node));
    case NodeKind::concat:
      return eval_concat(static_cast<const ConcatNode&>(node));
    case NodeKind::condition:
      return eval_condition(static_cast<const ConditionNode&>(node));
    case NodeKind::attribute: {
      const auto& n = static_cast<const AttributeNode&>(node);
      return getattr(eval(*n.object), n.name);
    }
    case NodeKind::item:
      return eval_item(static_cast<const ItemNode&>(node));
    case NodeKind::call:
      return eval_call(static_cast<const CallNode&>(node));
    case NodeKind::filter:
    case NodeKind::test:
      return eval_filter(static_cast<const FilterNode&>(node));
    default:
      fail(Fault::syntax, "this can't stand in an expression");
  }
}

Value Interpreter::eval_constant(const ConstantNode& node) {
  switch (node.data.index()) {
    case 0:
      return Value::none();
    case 1:
      return Value::of(std::get<bool>(node.data));
    case 2:
      return Value::of(std::get<int64_t>(node.data));
    case 3:
      return Value::of(std::get<double>(node.data));
    default: {
      Value& value = constants_[&node];
      if (value.is(Kind::missing)) value = heap.string(std::get<std::string>(node.data));
      return value;
    }
  }
}

Value Interpreter::eval_name(const NameNode& node) {
  const Value& value = slot(node.ref);
  return value.is(Kind::missing) ? heap.undefined("'" + node.name + "' is undefined") : value;
}

Value Interpreter::eval_sequence(const SequenceNode& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const NodePtr& item : node.items) items.push_back(eval(*item));
  return node.kind == NodeKind::list ? heap.list(std::move(items)) : heap.tuple(std::move(items));
}

Value Interpreter::eval_dict(const DictNode& node) {
  Ref<Dict> dict = heap.dict();
  for (const auto& [key, value] : node.items) {
    const Value k = eval(*key);
    heap.set(*dict, k, eval(*value));
  }
  return value_of(dict);
}

Value Interpreter::eval_unary(const UnaryNode& node) {
  const Value v = eval(*node.operand);
  if (node.op == Op::not_) return Value::of(!truth(v));
  return node.op == Op::neg ? negated(v) : positive(v);
}

Value Interpreter::eval_binary(const BinaryNode& node) {
  const Value left = eval(*node.left);
  return arithmetic(*this, node.op, left, eval(*node.right));
}

Value Interpreter::eval_logic(const BinaryNode& node) {
  Value left = eval(*node.left);
  return truth(left) == (node.op == Op::or_) ? left : eval(*node.right);
}

Value Interpreter::eval_compare(const CompareNode& node) {
  Value left = eval(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = eval(*operand);
    if (!compare(heap, op, left, right)) return Value::of(false);
    left = std::move(right);
  }
  return Value::of(true);
}

Value Interpreter::eval_concat(const ConcatNode& node) {
  std::vector<Value> parts;
  for (const NodePtr& part : node.parts) parts.push_back(eval(*part));
  std::string text;
  for (const Value& part : parts) {
    const std::string piece = to_text(part);
    heap.check_string(text.size() + piece.size());
    text += piece;
  }
  return heap.string(std::move(text));
}

Value Interpreter::eval_condition(const ConditionNode& node) {
  if (truth(eval(*node.test))) return eval(*node.yes);
  if (node.no) return eval(*node.no);
  return heap.undefined(fmt::format(
      "the inline if-expression on line {} evaluated to false and no else section was defined.", node.line));
}

Value Interpreter::eval_item(const ItemNode& node) {
  const Value object = eval(*node.object);
  if (node.key->kind == NodeKind::slice) return eval_slice(object, static_cast<const SliceNode&>(*node.key));
  return getitem(object, eval(*node.key));
}

Value Interpreter::eval_slice(const Value& object, const SliceNode& node) {
  const auto part = [this](const NodePtr& n) { return n ? eval(*n) : Value::none(); };
  const Value start = part(node.start), stop = part(node.stop);
  return slice(heap, object, start, stop, part(node.step));
}

Args Interpreter::eval_arguments(const Arguments& arguments) {
  Args args;
  for (const NodePtr& a : arguments.positional) args.positional.push_back(eval(*a));
  for (const auto& [name, node] : arguments.named) args.named.emplace_back(name, eval(*node));
  if (arguments.list) {
    for (Value& v : to_vector(heap, eval(*arguments.list))) args.positional.push_back(std::move(v));
  }
  if (arguments.dict) {
    const Value dict = eval(*arguments.dict);
    if (!dict.is(Kind::dict)) fail(Fault::type, "argument after ** must be a mapping, not {}", type_name(dict));
    for (const auto& [key, value] : dict.as<Dict>().items) {
      if (!key.is(Kind::string)) fail(Fault::type, "keywords must be strings");
      for (const auto& other : args.named)
        if (other.first == text_of(key))
          fail(Fault::type, "got multiple values for keyword argument '{}'", other.first);
      args.named.emplace_back(text_of(key), value);
    }
  }
  return args;
}

Value Interpreter::eval_call(const CallNode& node, const Value* caller) {
  const Value callee = eval(*node.callee);
  Args args = eval_arguments(node.arguments);
  if (caller) args.named.emplace_back("caller", *caller);
  return call(callee, args);
}

Value Interpreter::eval_filter(const FilterNode& node) {
  const Value subject = node.subject ? eval(*node.subject) : *block_text_;
  const Args args = eval_arguments(node.arguments);
  if (node.kind == NodeKind::filter) return call_filter(*this, node.name, subject, args);
  return Value::of(call_test(*this, node.name, subject, args));
}

}  // namespace consonant::jinja
