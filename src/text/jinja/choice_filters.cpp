// SPDX-License-Identifier: Apache-2.0
// map, select, reject, selectattr, rejectattr: they go through their items one by one, when these are asked for.
#include "text/jinja/filters.hpp"
#include "text/jinja/interpreter.hpp"

namespace consonant::jinja {

namespace {

// The parts that all of them share: nothing is looked at before the first item is wanted, and a source that is false
// has no items, whatever it is.
struct Chosen : Iterator {
  Chosen(Interpreter& i, Value s, Args a) : in(i), source(std::move(s)), args(std::move(a)) {}
  bool next(Value& item) override {
    if (!started) {
      started = true;
      if (!truth(source)) return false;
      prepare();
      items = iterate(in.heap, source);
    }
    while (items && items->next(item)) {
      in.heap.spend(1);
      if (take(item)) return true;
    }
    return false;
  }
  virtual void prepare() = 0;
  virtual bool take(Value& item) = 0;  // may change the item; false: leave it out

  Interpreter& in;
  const Value source;
  Args args;
  Ref<Iterator> items;
  bool started = false;
};

std::string take_name(Args& args, const char* what) {
  const Value name = args.positional.front();
  args.positional.erase(args.positional.begin());
  if (!name.is(Kind::string)) fail(Fault::runtime, "No {} named {}", what, type_name(name));
  return text_of(name);
}

struct Mapped : Chosen {
  using Chosen::Chosen;
  void prepare() override {
    if (!args.positional.empty()) {
      filter = take_name(args, "filter");
      return;
    }
    bool found = false;
    for (const auto& [name, value] : args.named) {
      if (name == "attribute") {
        path = AttributePath(value);
        found = true;
      }
    }
    if (!found) fail(Fault::type, "map requires a filter argument");
    for (const auto& [name, value] : args.named) {
      if (name == "default")
        otherwise = value;
      else if (name != "attribute")
        fail(Fault::type, "map() takes no argument named '{}' beside 'attribute'", name);
    }
  }
  bool take(Value& item) override {
    item = filter.empty() ? path.find(in, item, &otherwise) : call_filter(in, filter, item, args);
    return true;
  }
  std::string filter;
  AttributePath path{Value()};
  Value otherwise = Value::none();
};

struct Selected : Chosen {
  Selected(Interpreter& i, Value s, Args a, bool w, bool at)
      : Chosen(i, std::move(s), std::move(a)), wanted(w), by_attribute(at) {}
  void prepare() override {
    if (by_attribute) {
      if (args.positional.empty()) fail(Fault::type, "Missing parameter for attribute name");
      path = AttributePath(args.positional.front());
      args.positional.erase(args.positional.begin());
    }
    if (!args.positional.empty()) test = take_name(args, "test");
  }
  bool take(Value& item) override {
    const Value looked_at = path.find(in, item);
    return (test.empty() ? truth(looked_at) : call_test(in, test, looked_at, args)) == wanted;
  }
  const bool wanted, by_attribute;
  std::string test;
  AttributePath path{Value()};
};

void hold_all(Heap& heap, Chosen& chosen) {
  heap.hold(chosen, chosen.source);
  for (const Value& v : chosen.args.positional) heap.hold(chosen, v);
  for (const auto& named : chosen.args.named) heap.hold(chosen, named.second);
}

Value map(Interpreter& in, const Value& self, const Bound& args) {
  Ref<Mapped> it = in.heap.make<Mapped>(0, in, self, args.all);
  hold_all(in.heap, *it);
  return value_of(Ref<Iterator>(it));
}

template <bool wanted, bool by_attribute>
Value choose(Interpreter& in, const Value& self, const Bound& args) {
  Ref<Selected> it = in.heap.make<Selected>(0, in, self, args.all, wanted, by_attribute);
  hold_all(in.heap, *it);
  return value_of(Ref<Iterator>(it));
}

// obj|attr("name"): the attribute only, never the item of that name.
Value attr(Interpreter& in, const Value& self, const Bound& args) {
  if (self.is(Kind::undefined)) fail_undefined(self);
  if (!self.is(Kind::dict)) return in.getattr(self, args.text(0));
  const Value method = find_method(in, self, args.text(0));
  if (!method.is(Kind::missing)) return method;
  return in.heap.undefined("'dict object' has no attribute '" + args.text(0) + "'");
}

constexpr NativeEntry entries[] = {
    {"attr", "name!", attr},
    {"map", "*", map},
    {"reject", "*", choose<false, false>},
    {"rejectattr", "*", choose<false, true>},
    {"select", "*", choose<true, false>},
    {"selectattr", "*", choose<true, true>},
};

}  // namespace

std::span<const NativeEntry> choice_filters() { return entries; }

}  // namespace consonant::jinja
