// SPDX-License-Identifier: Apache-2.0
// The methods of Python's other types.
#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.hpp"

namespace consonant::jinja {

namespace {

template <View::Of of>
Value view(Interpreter& in, const Value& self, const Bound&) {
  Ref<View> v = in.heap.make<View>(0, Ref<Dict>(&self.as<Dict>()), of);
  in.heap.hold(*v, self);
  return Value(Kind::view, v);
}

Value dict_get(Interpreter&, const Value& self, const Bound& args) {
  const Value* found = self.as<Dict>().find(args.value(0));
  return found ? *found : args.value(1);
}

Value copy(Interpreter& in, const Value& self, const Bound&) {
  if (self.is(Kind::list)) return in.heap.list(self.as<List>().items);
  Ref<Dict> dict = in.heap.dict();
  for (const auto& [key, value] : self.as<Dict>().items) in.heap.set(*dict, key, value);
  return value_of(dict);
}

Value count(Interpreter& in, const Value& self, const Bound& args) {
  const Value wanted = args.value(0);
  const std::vector<Value> items = to_vector(in.heap, self);
  return Value::of(static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& v) { return equal(v, wanted); })));
}

Value index(Interpreter& in, const Value& self, const Bound& args) {
  const std::vector<Value> items = to_vector(in.heap, self);
  const auto size = static_cast<int64_t>(items.size());
  const auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
  const int64_t from = clamp(args.integer(1, 0)), to = clamp(args.integer(2, size));
  for (int64_t i = from; i < to; ++i)
    if (equal(items[static_cast<size_t>(i)], args.value(0))) return Value::of(i);
  fail(Fault::value, "the value is not in the {}", type_name(self));
}

Value is_integer(Interpreter&, const Value& self, const Bound&) {
  return Value::of(std::floor(self.real) == self.real);
}

Value bit_length(Interpreter&, const Value& self, const Bound&) {
  uint64_t v = self.integer < 0 ? -static_cast<uint64_t>(self.integer) : static_cast<uint64_t>(self.integer);
  int64_t bits = 0;
  for (; v; v >>= 1) ++bits;
  return Value::of(bits);
}

constexpr NativeEntry dict_methods[] = {
    {"keys", "/", view<View::Of::keys>},
    {"values", "/", view<View::Of::values>},
    {"items", "/", view<View::Of::items>},
    {"get", "/ key! default", dict_get},
    {"copy", "/", copy},
};
constexpr NativeEntry list_methods[] = {
    {"count", "/ value!", count}, {"index", "/ value! start stop", index}, {"copy", "/", copy}};
constexpr NativeEntry real_methods[] = {{"is_integer", "/", is_integer}};
constexpr NativeEntry integer_methods[] = {{"bit_length", "/", bit_length}};

template <size_t n>
const NativeEntry* among(const NativeEntry (&entries)[n], std::string_view name) {
  for (const NativeEntry& entry : entries)
    if (entry.name == name) return &entry;
  return nullptr;
}

bool listed(std::string_view names, std::string_view name) {
  if (name.empty()) return false;
  for (size_t at = names.find(name); at != std::string_view::npos; at = names.find(name, at + 1)) {
    const bool starts = at == 0 || names[at - 1] == ' ';
    const size_t end = at + name.size();
    if (starts && (end == names.size() || names[end] == ' ')) return true;
  }
  return false;
}

struct Type {
  const NativeEntry* found;
  std::string_view changing;  // methods that change the value: the sandbox hides them
  std::string_view others;    // what else Python has
};

Type look_up(const Value& self, std::string_view name) {
  switch (self.kind) {
    case Kind::string:
      return {find_string_method(name), "",
              self.as<String>().markup ? "encode isnumeric maketrans translate escape striptags unescape"
                                       : "encode isnumeric maketrans translate"};
    case Kind::list:
      return {among(list_methods, name), "append clear pop reverse insert sort extend remove", ""};
    case Kind::tuple:
      return {name == "copy" ? nullptr : among(list_methods, name), "", ""};
    case Kind::range:
      return {name == "copy" ? nullptr : among(list_methods, name), "", ""};
    case Kind::dict:
      return {among(dict_methods, name), "clear pop popitem setdefault update", "fromkeys"};
    case Kind::view:
      return {nullptr, "", "isdisjoint mapping"};
    case Kind::integer:
    case Kind::boolean:
      return {among(integer_methods, name), "",
              "real imag numerator denominator conjugate as_integer_ratio bit_count "
              "from_bytes to_bytes"};
    case Kind::real:
      return {among(real_methods, name), "", "real imag conjugate as_integer_ratio fromhex hex"};
    case Kind::generator:
      return {nullptr, "", "send throw close gi_code gi_frame gi_running gi_yieldfrom"};
    default:
      return {nullptr, "", ""};
  }
}

}  // namespace

Value bind(Heap& heap, const NativeEntry& entry, const Value& self) {
  Ref<Function> f = heap.make<Function>(0, entry, self);
  heap.hold(*f, self);
  return Value(Kind::function, f);
}

Value find_method(Interpreter& in, const Value& self, std::string_view name) {
  const Type type = look_up(self, name);
  if (type.found) return bind(in.heap, *type.found, self);
  if (listed(type.changing, name))
    return in.heap.undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe: a template can't change its values", name,
                    type_name(self)),
        Fault::security);
  if (listed(type.others, name)) fail(Fault::unsupported, "'{}' of a {} isn't supported", name, type_name(self));
  return {};
}

}  // namespace consonant::jinja
