// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "text/jinja/ast.hpp"
#include "text/jinja/frame.hpp"
#include "text/jinja/library.hpp"
#include "text/jinja/local_time.hpp"
#include "text/jinja/value.hpp"

namespace consonant::jinja {

// One rendering of a template.
class Interpreter {
 public:
  Interpreter(const Template& tree, const nlohmann::ordered_json& variables, const LocalTime& now,
              const Limits& limits);
  ~Interpreter();

  std::string run();
  int line() const { return line_; }

  // For the library.
  Value getattr(const Value& object, std::string_view name);  // object.name
  Value getitem(const Value& object, const Value& key);       // object[key]
  Value call(const Value& callee, const Args& args);
  const LocalTime& now() const { return now_; }

  Heap heap;

 private:
  enum class Flow { next, break_, continue_ };
  friend struct FilteredItems;

  // statements.cpp
  Flow run(const Body& body);
  Flow run(const Node& node);
  Flow run_if(const IfNode& node);
  Flow run_set_block(const SetBlockNode& node);
  Flow run_filter_block(const FilterBlockNode& node);
  Flow run_with(const WithNode& node);
  void run_output(const OutputNode& node);
  void run_for(const ForNode& node);
  void run_loop(const ForNode& node, const Value& items, int depth0, const Ref<Frame>& outer);
  void run_call_block(const CallBlockNode& node);
  void enter(const Scope& scope);
  void leave(const Scope& scope);
  void assign(const Node& target, const Value& value);
  void check_spaces(const Node& target);
  Value target_value(const Node& target);
  Value call_macro(const Value& macro, const Args& args);
  void bind_parameters(const MacroNode& node, const Args& args, Frame& frame);
  Value call_loop(const Value& loop, const Args& args);
  void write(std::string_view text);
  void write_text(const Value& v);
  // Runs `body` with its output in a string of its own.
  template <class F>
  Value capture(F&& body);

  // expressions.cpp
  Value eval(const Node& node);
  Value eval_node(const Node& node);
  Value eval_constant(const ConstantNode& node);
  Value eval_name(const NameNode& node);
  Value eval_sequence(const SequenceNode& node);
  Value eval_dict(const DictNode& node);
  Value eval_unary(const UnaryNode& node);
  Value eval_binary(const BinaryNode& node);
  Value eval_logic(const BinaryNode& node);
  Value eval_compare(const CompareNode& node);
  Value eval_concat(const ConcatNode& node);
  Value eval_condition(const ConditionNode& node);
  Value eval_item(const ItemNode& node);
  Value eval_slice(const Value& object, const SliceNode& node);
  Value eval_call(const CallNode& node, const Value* caller = nullptr);
  Value eval_filter(const FilterNode& node);
  Args eval_arguments(const Arguments& arguments);
  Value& slot(SlotRef ref);
  Value resolve(const std::string& name);

  class InFrame;
  class InFunction;

  const Template& tree_;
  const nlohmann::ordered_json& variables_;
  const LocalTime now_;
  std::unordered_map<std::string, Value> context_;  // variables that were asked for
  std::unordered_map<const Node*, Value> constants_;
  Ref<Frame> frame_;
  std::string* out_ = nullptr;
  const Value* block_text_ = nullptr;  // of the filter block or set block whose filter is being evaluated
  int depth_ = 0;
  int line_ = 1;
};

}  // namespace consonant::jinja
