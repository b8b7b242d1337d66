// SPDX-License-Identifier: Apache-2.0
// object.name and object[key], in the order in which jinja2's sandbox looks.

#include "text/jinja/interpreter.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

std::string object_name(const Value& v) {
  return v.is(Kind::none)
             ? "None"
             : std::string(v.is(Kind::string) && v.as<String>().markup ? "markupsafe.Markup" : type_name(v)) +
                   " object";
}

Value no_attribute(Heap& heap, const Value& object, std::string_view name) {
  return heap.undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), name));
}

Value index_items(Heap& heap, const Value& object, const Value& key) {
  const int64_t size = length_of(object);
  const int64_t i = key.integer < 0 ? key.integer + size : key.integer;
  if (i < 0 || i >= size) return {};
  switch (object.kind) {
    case Kind::range:
      return Value::of(object.as<Range>().at(i));
    case Kind::string: {
      const auto& s = object.as<String>();
      const size_t from = byte_offset(s, i);
      const std::string_view rest = std::string_view(s.text).substr(from);
      heap.spend_bytes(from);
      return heap.string(std::string(rest.substr(0, byte_offset(rest, 1))), s.markup);
    }
    default:
      return object.as<List>().items[static_cast<size_t>(i)];
  }
}

// loop.cycle(...)
Value loop_cycle(Interpreter&, const Value& self, const Bound& args) {
  const auto& items = args.all.positional;
  if (!args.all.named.empty()) fail(Fault::type, "cycle() takes no keyword arguments");
  if (items.empty()) fail(Fault::type, "no items for cycling given");
  return items[static_cast<size_t>(self.as<Loop>().index0) % items.size()];
}

// loop.changed(...)
Value loop_changed(Interpreter& in, const Value& self, const Bound& args) {
  auto& loop = self.as<Loop>();
  if (!args.all.named.empty()) fail(Fault::type, "changed() takes no keyword arguments");
  const Value now = in.heap.tuple(args.all.positional);
  if (!loop.changed.is(Kind::missing) && equal(loop.changed, now)) return Value::of(false);
  if (loop.changed.is(Kind::missing)) in.heap.keep(self.object);
  loop.changed = now;
  return Value::of(true);
}

Value cycler_next(Interpreter&, const Value& self, const Bound&) {
  auto& cycler = self.as<Cycler>();
  const Value v = cycler.items[cycler.at];
  cycler.at = (cycler.at + 1) % cycler.items.size();
  return v;
}

Value cycler_reset(Interpreter&, const Value& self, const Bound&) {
  self.as<Cycler>().at = 0;
  return Value::none();
}

Value loop_attribute(Heap& heap, const Value& self, std::string_view name) {
  auto& loop = self.as<Loop>();
  if (name == "index") return Value::of(loop.index0 + 1);
  if (name == "index0") return Value::of(loop.index0);
  if (name == "first") return Value::of(loop.index0 == 0);
  if (name == "last") return Value::of(!loop.peek());
  if (name == "length") return Value::of(loop.size());
  if (name == "revindex") return Value::of(loop.size() - loop.index0);
  if (name == "revindex0") return Value::of(loop.size() - loop.index0 - 1);
  if (name == "depth") return Value::of(static_cast<int64_t>(loop.depth0) + 1);
  if (name == "depth0") return Value::of(static_cast<int64_t>(loop.depth0));
  if (name == "previtem") return loop.index0 == 0 ? heap.undefined("there is no previous item") : loop.before;
  if (name == "nextitem") return loop.peek() ? loop.after : heap.undefined("there is no next item");
  if (name == "cycle") return bind(heap, {"cycle", "*", loop_cycle}, self);
  if (name == "changed") return bind(heap, {"changed", "*", loop_changed}, self);
  return {};
}

Value macro_attribute(Heap& heap, const Value& self, std::string_view name) {
  const auto& node = self.as<Macro>().node;
  if (name == "name") return node.name.empty() ? Value::none() : heap.string(node.name);
  if (name == "catch_kwargs") return Value::of(node.kwargs_slot >= 0);
  if (name == "catch_varargs") return Value::of(node.varargs_slot >= 0);
  if (name == "caller") return Value::of(node.uses_caller);
  if (name == "explicit_caller") return Value::of(node.has_caller_parameter);
  if (name != "arguments") return {};
  std::vector<Value> names;
  for (const auto& parameter : node.parameters) names.push_back(heap.string(parameter->name));
  return heap.tuple(std::move(names));
}

Value cycler_attribute(Heap& heap, const Value& self, std::string_view name) {
  const auto& cycler = self.as<Cycler>();
  if (name == "current") return cycler.items[cycler.at];
  if (name == "pos") return Value::of(static_cast<int64_t>(cycler.at));
  if (name == "items") return heap.tuple(cycler.items);
  if (name == "next") return bind(heap, {"next", "", cycler_next}, self);
  if (name == "reset") return bind(heap, {"reset", "", cycler_reset}, self);
  return {};
}

Value range_attribute(const Value& self, std::string_view name) {
  const auto& range = self.as<Range>();
  if (name == "start") return Value::of(range.start);
  if (name == "stop") return Value::of(range.stop);
  if (name == "step") return Value::of(range.step);
  return {};
}

// Python's getattr(): missing if there is none.
Value attribute(Interpreter& in, const Value& object, std::string_view name) {
  Value v;
  switch (object.kind) {
    case Kind::loop:
      return loop_attribute(in.heap, object, name);
    case Kind::macro:
      return macro_attribute(in.heap, object, name);
    case Kind::cycler:
      return cycler_attribute(in.heap, object, name);
    case Kind::joiner:
      if (name == "sep") return object.as<Joiner>().separator;
      return name == "used" ? Value::of(object.as<Joiner>().used) : Value();
    case Kind::space: {
      const Value* found = object.as<Space>().attributes->find(name);
      return found ? *found : Value();
    }
    case Kind::range:
      v = range_attribute(object, name);
      break;
    case Kind::tuple:
      if (object.as<List>().group && name == "grouper") return object.as<List>().items[0];
      if (object.as<List>().group && name == "list") return object.as<List>().items[1];
      break;
    default:
      break;
  }
  return v.is(Kind::missing) ? find_method(in, object, name) : v;
}

// Python's object[key]; missing where that raises what jinja2 catches.
Value item(Interpreter& in, const Value& object, const Value& key) {
  switch (object.kind) {
    case Kind::dict: {
      if (key.is(Kind::list) || key.is(Kind::dict)) return {};  // not hashable
      const Value* found = object.as<Dict>().find(key);
      return found ? *found : Value();
    }
    case Kind::string:
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return key.is_integral() ? index_items(in.heap, object, key) : Value();
    case Kind::undefined:
      fail_undefined(object);
    default:
      return {};
  }
}

// Python's own attributes, which the sandbox hides.
bool internal(std::string_view name) {
  return name.size() > 4 && name.substr(0, 2) == "__" && name.substr(name.size() - 2) == "__";
}

}  // namespace

Value Interpreter::getattr(const Value& object, std::string_view name) {
  if (object.is(Kind::undefined)) fail_undefined(object);
  Value v;
  if (!internal(name)) v = attribute(*this, object, name);
  if (v.is(Kind::missing) && object.is(Kind::dict))
    if (const Value* found = object.as<Dict>().find(name)) v = *found;
  if (!v.is(Kind::missing)) return v;
  if (internal(name)) fail(Fault::security, "access to attribute '{}' of '{}' is unsafe", name, object_name(object));
  return no_attribute(heap, object, name);
}

Value Interpreter::getitem(const Value& object, const Value& key) {
  Value v = item(*this, object, key);
  if (!v.is(Kind::missing)) return v;
  if (!key.is(Kind::string)) return heap.undefined(object_name(object) + " has no element " + repr(key));
  const std::string& name = text_of(key);
  if (internal(name)) {
    if (object.is(Kind::dict)) return no_attribute(heap, object, name);
    fail(Fault::security, "access to attribute '{}' of '{}' is unsafe", name, object_name(object));
  }
  v = attribute(*this, object, name);
  return v.is(Kind::missing) ? no_attribute(heap, object, name) : v;
}

}  // namespace consonant::jinja
