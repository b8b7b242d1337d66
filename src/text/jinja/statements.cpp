// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/interpreter.hpp"
#include "text/jinja/nesting.hpp"
#include "text/jinja/print.hpp"

namespace consonant::jinja {

// Makes a frame the current one while it lives.
class Interpreter::InFrame {
 public:
  InFrame(Interpreter& in, Ref<Frame> frame) : in_(in), outer_(std::exchange(in.frame_, std::move(frame))) {}
  InFrame(const InFrame&) = delete;
  ~InFrame() { in_.frame_ = outer_; }

 protected:
  Interpreter& in_;
  Ref<Frame> outer_;
};

// The same for the frame of a function that is being called. A macro that was written in it and lives on refers to the
// frame, which may hold that macro: then the heap has to break the circle.
class Interpreter::InFunction : public InFrame {
 public:
  using InFrame::InFrame;
  ~InFunction() {
    if (in_.frame_->refs > 1) in_.heap.keep(in_.frame_);
  }
};

Interpreter::Interpreter(const Template& tree, const nlohmann::ordered_json& variables, const LocalTime& now,
                         const Limits& limits)
    : heap(limits), tree_(tree), variables_(variables), now_(now) {}

Interpreter::~Interpreter() = default;

std::string Interpreter::run() {
  std::string out;
  out_ = &out;
  frame_ = heap.make<Frame>(sizeof(Value) * static_cast<size_t>(tree_.slots), static_cast<size_t>(tree_.slots),
                            Ref<Frame>());
  heap.keep(frame_);
  enter(tree_.scope);
  run(tree_.body);
  return out;
}

void Interpreter::write(std::string_view text) {
  heap.check_string(out_->size() + text.size());
  heap.spend_bytes(text.size());
  heap.charge(text.size());
  out_->append(text);
}

// What a block results in: unlike an output, it isn't turned into text.
void Interpreter::write_text(const Value& v) {
  if (!v.is(Kind::string)) fail(Fault::type, "the block results in a value of type {}, not a string", type_name(v));
  write(text_of(v));
}

template <class F>
Value Interpreter::capture(F&& body) {
  std::string text;
  std::string* outer = std::exchange(out_, &text);
  body();
  out_ = outer;
  heap.give_back(text.size());
  return heap.string(std::move(text));
}

void Interpreter::enter(const Scope& scope) {
  for (const Load& load : scope.loads) {
    Value value;
    if (load.from == Load::From::context) value = resolve(load.name);
    if (load.from == Load::From::outer) value = slot(load.source);
    frame_->slots[static_cast<size_t>(load.slot)] = std::move(value);
  }
}

void Interpreter::leave(const Scope& scope) {
  for (const int slot : scope.clear) frame_->slots[static_cast<size_t>(slot)] = Value();
}

Interpreter::Flow Interpreter::run(const Body& body) {
  for (const NodePtr& node : body)
    if (const Flow flow = run(*node); flow != Flow::next) return flow;
  return Flow::next;
}

Interpreter::Flow Interpreter::run(const Node& node) {
  const Nesting nesting(depth_, heap.limits.call_depth);
  heap.spend(1);
  line_ = node.line;
  switch (node.kind) {
    case NodeKind::output:
      run_output(static_cast<const OutputNode&>(node));
      break;
    case NodeKind::if_:
      return run_if(static_cast<const IfNode&>(node));
    case NodeKind::for_:
      run_for(static_cast<const ForNode&>(node));
      break;
    case NodeKind::set: {
      const auto& n = static_cast<const SetNode&>(node);
      check_spaces(*n.target);
      assign(*n.target, eval(*n.value));
      break;
    }
    case NodeKind::set_block:
      return run_set_block(static_cast<const SetBlockNode&>(node));
    case NodeKind::macro: {
      const auto& n = static_cast<const MacroNode&>(node);
      slot(n.ref) = Value(Kind::macro, heap.make<Macro>(0, n, frame_));
      break;
    }
    case NodeKind::call_block:
      run_call_block(static_cast<const CallBlockNode&>(node));
      break;
    case NodeKind::filter_block:
      return run_filter_block(static_cast<const FilterBlockNode&>(node));
    case NodeKind::with:
      return run_with(static_cast<const WithNode&>(node));
    case NodeKind::loop_control:
      return static_cast<const LoopControlNode&>(node).is_break ? Flow::break_ : Flow::continue_;
    default:
      fail(Fault::syntax, "this can't stand alone");
  }
  return Flow::next;
}

void Interpreter::run_output(const OutputNode& node) {
  for (const NodePtr& part : node.parts) {
    if (part->kind == NodeKind::text) {
      write(static_cast<const TextNode&>(*part).text);
      continue;
    }
    line_ = part->line;
    const Value v = eval(*part);
    if (v.is(Kind::string))
      write(text_of(v));
    else
      write(to_text(v));
  }
}

Interpreter::Flow Interpreter::run_if(const IfNode& node) {
  for (const IfNode::Branch& branch : node.branches) {
    line_ = branch.line;
    if (truth(eval(*branch.test))) return run(branch.body);
  }
  return run(node.otherwise);
}

Interpreter::Flow Interpreter::run_set_block(const SetBlockNode& node) {
  enter(node.scope);
  Flow flow = Flow::next;
  Value text = capture([&] { flow = run(node.body); });
  if (flow != Flow::next) return flow;
  line_ = node.line;
  if (node.filter) {
    const Value* outer = std::exchange(block_text_, &text);
    const Value filtered = eval(*node.filter);
    block_text_ = outer;
    text = filtered;
  }
  check_spaces(*node.target);
  assign(*node.target, text);
  leave(node.scope);
  return flow;
}

Interpreter::Flow Interpreter::run_filter_block(const FilterBlockNode& node) {
  enter(node.scope);
  Flow flow = Flow::next;
  const Value text = capture([&] { flow = run(node.body); });
  if (flow != Flow::next) return flow;
  line_ = node.line;
  const Value* outer = std::exchange(block_text_, &text);
  write_text(eval(*node.filter));
  block_text_ = outer;
  leave(node.scope);
  return flow;
}

Interpreter::Flow Interpreter::run_with(const WithNode& node) {
  // The values see the names outside, so that all are known before one is set.
  std::vector<Value> values;
  for (const NodePtr& value : node.values) values.push_back(eval(*value));
  enter(node.scope);
  for (size_t i = 0; i < values.size(); ++i) assign(*node.targets[i], values[i]);
  const Flow flow = run(node.body);
  leave(node.scope);
  return flow;
}

// The targets `ns.name` of an assignment must be namespaces before its value is computed.
void Interpreter::check_spaces(const Node& target) {
  if (target.kind == NodeKind::space_attribute) {
    const auto& node = static_cast<const SpaceAttributeNode&>(target);
    if (!slot(node.ref).is(Kind::space))
      fail(Fault::runtime, "cannot assign attribute on non-namespace object '{}'", node.name);
  } else if (target.kind == NodeKind::tuple) {
    for (const NodePtr& item : static_cast<const SequenceNode&>(target).items) check_spaces(*item);
  }
}

void Interpreter::assign(const Node& target, const Value& value) {
  if (target.kind == NodeKind::name) {
    slot(static_cast<const NameNode&>(target).ref) = value;
    return;
  }
  if (target.kind == NodeKind::space_attribute) {
    const auto& node = static_cast<const SpaceAttributeNode&>(target);
    const Value space = slot(node.ref);
    if (!space.is(Kind::space)) fail(Fault::runtime, "cannot assign attribute on non-namespace object '{}'", node.name);
    heap.set(*space.as<Space>().attributes, heap.string(node.attribute), value);
    return;
  }
  if (!can_iterate(value)) {
    if (value.is(Kind::undefined)) fail_undefined(value);
    fail(Fault::type, "cannot unpack non-iterable {} object", type_name(value));
  }
  const auto& items = static_cast<const SequenceNode&>(target).items;
  const Ref<Iterator> it = iterate(heap, value);
  std::vector<Value> parts;
  for (Value part; parts.size() <= items.size() && it->next(part);) parts.push_back(part);
  if (parts.size() > items.size()) fail(Fault::value, "too many values to unpack (expected {})", items.size());
  if (parts.size() < items.size())
    fail(Fault::value, "not enough values to unpack (expected {}, got {})", items.size(), parts.size());
  for (size_t i = 0; i < items.size(); ++i) assign(*items[i], parts[i]);
}

// What a target holds now: the test of a loop passes on what it unpacked.
Value Interpreter::target_value(const Node& target) {
  if (target.kind == NodeKind::name) return slot(static_cast<const NameNode&>(target).ref);
  std::vector<Value> parts;
  for (const NodePtr& item : static_cast<const SequenceNode&>(target).items) parts.push_back(target_value(*item));
  return heap.tuple(std::move(parts));
}

// The items of a loop that pass its test. jinja2 tests an item when it is asked for, not before.
struct FilteredItems : Iterator {
  FilteredItems(Interpreter& i, const ForNode& n, Ref<Iterator> s, Ref<Frame> f)
      : in(i), node(n), source(std::move(s)), frame(std::move(f)) {}
  bool next(Value& item) override {
    const Interpreter::InFrame here(in, frame);
    while (source->next(item)) {
      in.heap.spend(1);
      in.assign(*node.test_target, item);
      if (!truth(in.eval(*node.test))) continue;
      item = in.target_value(*node.test_target);
      return true;
    }
    return false;
  }
  Interpreter& in;
  const ForNode& node;
  const Ref<Iterator> source;
  const Ref<Frame> frame;
};

void Interpreter::run_for(const ForNode& node) {
  const Value items = eval(*node.items);
  if (!node.recursive) return run_loop(node, items, 0, frame_);
  const auto slots = static_cast<size_t>(node.slots);
  const Ref<Frame> outer = frame_;
  const Value text = capture([&] {
    const InFunction here(*this, heap.make<Frame>(slots * sizeof(Value), slots, outer));
    run_loop(node, items, 0, outer);
  });
  write(text_of(text));
}

void Interpreter::run_loop(const ForNode& node, const Value& items, int depth0, const Ref<Frame>& outer) {
  Ref<Iterator> source = iterate(heap, items);
  const bool counted = !node.test && !items.is(Kind::generator);
  if (node.test) {
    enter(node.test_scope);
    source = heap.make<FilteredItems>(0, *this, node, source, frame_);
  }
  const Ref<Loop> loop = heap.make<Loop>(0, source, counted ? length_of(items) : -1, depth0);
  if (node.recursive) {
    loop->node = &node;
    loop->outer = outer;
  }
  bool finished_one = false;
  while (loop->advance()) {
    heap.spend(1);
    assign(*node.target, loop->current);
    if (node.loop_slot >= 0) frame_->slots[static_cast<size_t>(node.loop_slot)] = Value(Kind::loop, loop);
    enter(node.body_scope);
    const Flow flow = run(node.body);
    if (flow == Flow::break_) break;
    // As in the code that jinja2 makes: an iteration that `continue` cut short doesn't keep `else` from running.
    if (flow == Flow::next) finished_one = true;
    line_ = node.line;
  }
  leave(node.body_scope);
  if (loop->refs > 1) heap.keep(loop);
  if (finished_one || node.otherwise.empty()) return;
  enter(node.else_scope);
  run(node.otherwise);
  leave(node.else_scope);
}

Value Interpreter::call_loop(const Value& value, const Args& args) {
  const Ref<Loop> loop(&value.as<Loop>());
  if (!loop->node) fail(Fault::type, "The loop must have the 'recursive' marker to be called recursively.");
  const Value items = Bound("loop", "iterable!", args).value(0);
  const auto slots = static_cast<size_t>(loop->node->slots);
  return capture([&] {
    const InFunction here(*this, heap.make<Frame>(slots * sizeof(Value), slots, loop->outer));
    run_loop(*loop->node, items, loop->depth0 + 1, loop->outer);
  });
}

void Interpreter::run_call_block(const CallBlockNode& node) {
  const Value caller(Kind::macro, heap.make<Macro>(0, *node.caller, frame_));
  if (!node.call) return write(text_of(call_macro(caller, {})));
  line_ = node.call->line;
  write_text(eval_call(static_cast<const CallNode&>(*node.call), &caller));
}

// Positional arguments, then those with names, as jinja2's Macro sorts them.
void Interpreter::bind_parameters(const MacroNode& node, const Args& args, Frame& frame) {
  const size_t count = node.parameters.size();
  auto named = args.named;
  const auto take = [&named](std::string_view name) {
    for (auto it = named.begin(); it != named.end(); ++it) {
      if (it->first != name) continue;
      Value value = it->second;
      named.erase(it);
      return value;
    }
    return Value();
  };
  for (size_t i = 0; i < count; ++i) {
    Value& value = frame.slots[static_cast<size_t>(node.parameters[i]->ref.slot)];
    value = i < args.positional.size() ? args.positional[i] : take(node.parameters[i]->name);
  }
  if (node.caller_slot >= 0) {
    const Value caller = take("caller");
    frame.slots[static_cast<size_t>(node.caller_slot)] =
        caller.is(Kind::missing) || caller.is(Kind::none) ? heap.undefined("No caller defined") : caller;
  }
  const std::string name = node.name.empty() ? "the body of a call block" : "macro '" + node.name + "'";
  if (node.kwargs_slot >= 0) {
    Ref<Dict> kwargs = heap.dict();
    for (const auto& [key, value] : named) heap.set(*kwargs, heap.string(key), value);
    frame.slots[static_cast<size_t>(node.kwargs_slot)] = value_of(kwargs);
  } else if (!named.empty()) {
    if (take("caller").is(Kind::missing)) fail(Fault::type, "{} takes no keyword argument '{}'", name, named[0].first);
    fail(Fault::type, "{} was called by a call block, but doesn't use `caller`", name);
  }
  const size_t used = std::min(count, args.positional.size());
  if (node.varargs_slot >= 0) {
    frame.slots[static_cast<size_t>(node.varargs_slot)] =
        heap.tuple({args.positional.begin() + static_cast<std::ptrdiff_t>(used), args.positional.end()});
  } else if (args.positional.size() > count) {
    fail(Fault::type, "{} takes not more than {} argument(s)", name, count);
  }
}

Value Interpreter::call_macro(const Value& value, const Args& args) {
  const auto& node = value.as<Macro>().node;
  const auto slots = static_cast<size_t>(node.slots);
  Ref<Frame> frame = heap.make<Frame>(slots * sizeof(Value), slots, value.as<Macro>().outer);
  bind_parameters(node, args, *frame);
  return capture([&] {
    const InFunction here(*this, std::move(frame));
    enter(node.scope);
    const size_t first_default = node.parameters.size() - node.defaults.size();
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      const auto& parameter = *node.parameters[i];
      const auto at = static_cast<size_t>(parameter.ref.slot);
      if (!frame_->slots[at].is(Kind::missing)) continue;
      Value v = i >= first_default ? eval(*node.defaults[i - first_default])
                                   : heap.undefined("parameter '" + parameter.name + "' was not provided");
      frame_->slots[at] = std::move(v);
    }
    run(node.body);
  });
}

Value Interpreter::call(const Value& callee, const Args& args) {
  const Nesting nesting(depth_, heap.limits.call_depth);
  heap.spend(1);
  switch (callee.kind) {
    case Kind::undefined:
      fail_undefined(callee);
    case Kind::macro: {
      const int line = line_;
      Value text = call_macro(callee, args);
      line_ = line;
      return text;
    }
    case Kind::loop: {
      const int line = line_;
      Value text = call_loop(callee, args);
      line_ = line;
      return text;
    }
    case Kind::function: {
      const auto& f = callee.as<Function>();
      return f.entry.run(*this, f.self, Bound(f.entry.name, f.entry.signature, args));
    }
    case Kind::joiner: {
      Bound("joiner", "", args);
      auto& joiner = callee.as<Joiner>();
      return std::exchange(joiner.used, true) ? joiner.separator : heap.string("");
    }
    default:
      fail(Fault::type, "'{}' object is not callable", type_name(callee));
  }
}

}  // namespace consonant::jinja
