// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/value.hpp"

#include <algorithm>
#include <cmath>

#include "base/utf8.hpp"

namespace consonant::jinja {

namespace {
constexpr size_t few = 8;  // a dict this small is searched from front to back
constexpr size_t per_item = 2 * sizeof(Value) + 32;
}  // namespace

Object::~Object() {
  if (heap) heap->give_back(charged);
}

void Heap::charge(size_t bytes) {
  if (bytes > limits.memory || used_ > limits.memory - bytes)
    fail(Fault::limit, "the template's values take more than {} bytes", limits.memory);
  used_ += bytes;
}

Heap::~Heap() {
  for (const Ref<Object>& object : kept_) object->drop();
  kept_.clear();
}

Value Heap::string(std::string text, bool markup) {
  check_string(text.size());
  spend_bytes(text.size());
  const size_t size = text.size();
  return Value(Kind::string, make<String>(size, std::move(text), markup));
}

Value Heap::sequence(Kind kind, std::vector<Value> items, bool group) {
  spend_bytes(items.size() * sizeof(Value));
  const size_t size = items.size() * sizeof(Value);
  Ref<List> list = make<List>(size, std::move(items), group);
  for (const Value& v : list->items) hold(*list, v);
  return Value(kind, list);
}

Ref<Dict> Heap::dict() { return make<Dict>(0); }

Value Heap::undefined(std::string message, Fault fault) {
  const size_t size = message.size();
  return Value(Kind::undefined, make<Undefined>(size, std::move(message), fault));
}

void Heap::hold(Object& object, const Value& value) {
  if (!value.object) return;
  object.depth = std::max(object.depth, value.object->depth + 1);
  if (object.depth > limits.value_depth) fail(Fault::limit, "values nested deeper than {} levels", limits.value_depth);
}

void Heap::set(Dict& dict, const Value& key, const Value& value) {
  hold(dict, key);
  hold(dict, value);
  const size_t before = dict.items.size();
  dict.set(key, value);
  if (dict.items.size() == before) return;
  charge(per_item);
  dict.charged += per_item;
}

Value Heap::from_json(const nlohmann::ordered_json& json) {
  switch (json.type()) {
    case nlohmann::json::value_t::null:
      return Value::none();
    case nlohmann::json::value_t::boolean:
      return Value::of(json.get<bool>());
    case nlohmann::json::value_t::number_integer:
      return Value::of(json.get<int64_t>());
    case nlohmann::json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        fail(Fault::unsupported, "the integer {} is beyond 64 bits with a sign", json.get<uint64_t>());
      return Value::of(json.get<int64_t>());
    case nlohmann::json::value_t::number_float:
      return Value::of(json.get<double>());
    case nlohmann::json::value_t::string: {
      const auto& text = json.get_ref<const std::string&>();
      if (const size_t bad = find_bad_utf8(text); bad != std::string::npos)
        fail(Fault::value, "a string of the conversation isn't UTF-8 from byte {}", bad);
      return string(text);
    }
    case nlohmann::json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const auto& item : json) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case nlohmann::json::value_t::object: {
      Ref<Dict> d = dict();
      for (const auto& [key, value] : json.items()) {
        if (!is_utf8(key)) fail(Fault::value, "a key of the conversation isn't UTF-8");
        set(*d, string(key), from_json(value));
      }
      return value_of(d);
    }
    default:
      fail(Fault::type, "a value of the conversation has no type that a template knows");
  }
}

const Value* Dict::find(const Value& key) const {
  if (items.size() > few) {
    const auto it = index_.find(key);
    return it == index_.end() ? nullptr : &items[it->second].second;
  }
  ValueHash{}(key);  // a list is no key
  for (const auto& item : items)
    if (equal(item.first, key)) return &item.second;
  return nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (items.size() > few) {
    const Value v(Kind::string, Ref<Object>(new String(std::string(key), false)));
    return find(v);
  }
  for (const auto& item : items)
    if (item.first.is(Kind::string) && text_of(item.first) == key) return &item.second;
  return nullptr;
}

void Dict::set(const Value& key, const Value& value) {
  if (const Value* found = find(key)) {
    *const_cast<Value*>(found) = value;
    return;
  }
  items.emplace_back(key, value);
  if (items.size() == few + 1) {
    for (size_t i = 0; i < items.size(); ++i) index_.emplace(items[i].first, i);
  } else if (items.size() > few) {
    index_.emplace(key, items.size() - 1);
  }
}

void Dict::drop() {
  index_.clear();
  items.clear();
}

int64_t Range::size() const {
  if (step > 0) return start >= stop ? 0 : (stop - start - 1) / step + 1;
  return start <= stop ? 0 : (start - stop - 1) / -step + 1;
}

const std::string& text_of(const Value& v) { return v.as<String>().text; }

Value none_if_missing(const Value& v) { return v.is(Kind::missing) ? Value::none() : v; }

void fail_undefined(const Value& v) {
  const auto& u = v.as<Undefined>();
  throw Failure(u.fault, u.message);
}

const char* type_name(const Value& v) {
  switch (v.kind) {
    case Kind::missing:
      return "missing";
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return v.as<String>().markup ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return v.as<List>().group ? "_GroupTuple" : "tuple";
    case Kind::dict:
      return "dict";
    case Kind::view: {
      const View::Of of = v.as<View>().of;
      return of == View::Of::keys ? "dict_keys" : of == View::Of::values ? "dict_values" : "dict_items";
    }
    case Kind::range:
      return "range";
    case Kind::generator:
      return v.as<Iterator>().type;
    case Kind::space:
      return "Namespace";
    case Kind::macro:
      return "Macro";
    case Kind::function:
      return "function";
    case Kind::loop:
      return "LoopContext";
    case Kind::cycler:
      return "Cycler";
    case Kind::joiner:
      return "Joiner";
  }
  return "?";
}

bool truth(const Value& v) {
  switch (v.kind) {
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return v.integer != 0;
    case Kind::real:
      return v.real != 0;
    case Kind::string:
      return !text_of(v).empty();
    case Kind::list:
    case Kind::tuple:
      return !v.as<List>().items.empty();
    case Kind::dict:
      return !v.as<Dict>().items.empty();
    case Kind::view:
      return !v.as<View>().dict->items.empty();
    case Kind::range:
      return v.as<Range>().size() > 0;
    case Kind::loop:
      return length_of(v) > 0;
    default:
      return true;
  }
}

namespace {

// Neither a double nor an int64 holds the other: a long double holds both (64 bits of mantissa or more).
int order(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.integer < b.integer ? -1 : a.integer > b.integer;
  const auto wide = [](const Value& v) {
    return v.kind == Kind::real ? static_cast<long double>(v.real) : static_cast<long double>(v.integer);
  };
  const long double x = wide(a), y = wide(b);
  return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;  // 2: one of them is no number
}

bool equal_items(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Value& x, const Value& y) { return equal(x, y); });
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  for (const auto& [key, value] : a.items) {
    const Value* other = b.find(key);
    if (!other || !equal(value, *other)) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  const int64_t n = a.size();
  if (n != b.size()) return false;
  return n == 0 || (a.start == b.start && (n == 1 || a.step == b.step));
}

// keys() and items() compare as sets.
bool equal_views(const View& a, const View& b) {
  if (a.of == View::Of::values || b.of == View::Of::values) return &a == &b;
  if (a.of != b.of) return a.dict->items.empty() && b.dict->items.empty();
  if (a.of == View::Of::items) return equal_dicts(*a.dict, *b.dict);
  if (a.dict->items.size() != b.dict->items.size()) return false;
  return std::all_of(a.dict->items.begin(), a.dict->items.end(),
                     [&](const auto& item) { return b.dict->find(item.first) != nullptr; });
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return order(a, b) == 0;
  if (a.kind != b.kind) return false;
  // Values that share their parts can be far larger than the memory they take.
  if (a.object && a.object->heap) a.object->heap->spend(1);
  switch (a.kind) {
    case Kind::string:
      return text_of(a) == text_of(b);
    case Kind::list:
    case Kind::tuple:
      return a.object.get() == b.object.get() || equal_items(a.as<List>().items, b.as<List>().items);
    case Kind::dict:
      return a.object.get() == b.object.get() || equal_dicts(a.as<Dict>(), b.as<Dict>());
    case Kind::view:
      return equal_views(a.as<View>(), b.as<View>());
    case Kind::range:
      return equal_ranges(a.as<Range>(), b.as<Range>());
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return true;
    default:
      return a.object.get() == b.object.get();
  }
}

bool identical(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::none:
      return true;
    case Kind::boolean:
      return a.integer == b.integer;
    case Kind::integer:  // CPython keeps one object for each of these
      if (a.integer == b.integer && a.integer >= -5 && a.integer <= 256) return true;
      [[fallthrough]];
    case Kind::real:
    case Kind::string:
      if (!equal(a, b)) return false;
      if (a.object && a.object.get() == b.object.get()) return true;
      fail(Fault::unsupported, "whether two equal values of type {} are the same object depends on Python's memory",
           type_name(a));
    default:
      return a.object.get() == b.object.get();
  }
}

bool compare(const Value& a, const Value& b, std::string_view op) {
  const bool or_equal = op.size() == 2, up = op[0] == '<';
  const auto decide = [&](int sign) { return sign == 0 ? or_equal : up ? sign < 0 : sign == 1; };
  if (a.is(Kind::undefined)) fail_undefined(a);
  if (b.is(Kind::undefined)) fail_undefined(b);
  if (a.is_number() && b.is_number()) {
    const int sign = order(a, b);
    return sign != 2 && decide(sign);
  }
  if (a.is(Kind::string) && b.is(Kind::string)) {  // UTF-8 sorts as code points do
    const int sign = text_of(a).compare(text_of(b));
    return decide(sign < 0 ? -1 : sign > 0);
  }
  if (a.kind == b.kind && a.is_sequence()) {
    const auto &x = a.as<List>().items, &y = b.as<List>().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i)
      if (!equal(x[i], y[i])) return compare(x[i], y[i], op);
    return decide(x.size() < y.size() ? -1 : x.size() > y.size());
  }
  if (a.is(Kind::view) && b.is(Kind::view)) fail(Fault::unsupported, "order of dict views");
  fail(Fault::type, "'{}' not supported between instances of '{}' and '{}'", op, type_name(a), type_name(b));
}

bool less(const Value& a, const Value& b) { return compare(a, b, "<"); }

bool ValueEqual::operator()(const Value& a, const Value& b) const { return equal(a, b); }

size_t ValueHash::operator()(const Value& v) const {
  switch (v.kind) {
    case Kind::string:
      return std::hash<std::string>{}(text_of(v));
    case Kind::boolean:
    case Kind::integer:
      return std::hash<int64_t>{}(v.integer);
    case Kind::real:
      if (std::floor(v.real) == v.real && std::fabs(v.real) < 9e18)
        return std::hash<int64_t>{}(static_cast<int64_t>(v.real));
      return std::hash<double>{}(v.real);
    case Kind::tuple: {
      v.object->heap->spend(1);
      size_t h = 0x345678;
      for (const Value& item : v.as<List>().items) h = h * 1000003 ^ (*this)(item);
      return h;
    }
    case Kind::list:
    case Kind::dict:
    case Kind::view:
      fail(Fault::type, "unhashable type: '{}'", type_name(v));
    case Kind::range:
      return static_cast<size_t>(v.as<Range>().size());
    case Kind::missing:
    case Kind::undefined:
    case Kind::none:
      return static_cast<size_t>(v.kind);
    default:
      return std::hash<const void*>{}(v.object.get());
  }
}

}  // namespace consonant::jinja
