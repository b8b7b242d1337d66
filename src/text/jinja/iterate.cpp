// SPDX-License-Identifier: Apache-2.0
// Walking values, and `loop`.
#include <algorithm>

#include "base/utf8.hpp"
#include "text/jinja/frame.hpp"
#include "text/jinja/unicode.hpp"
#include "text/jinja/value.hpp"

namespace consonant::jinja {

namespace {

struct VectorIterator : Iterator {
  VectorIterator(std::vector<Value> v, const char* t) : items(std::move(v)) { type = t; }
  bool next(Value& item) override {
    if (at == items.size()) return false;
    item = items[at++];
    return true;
  }
  const std::vector<Value> items;
  size_t at = 0;
};

struct ListIterator : Iterator {
  explicit ListIterator(const Value& v) : list(v) { type = v.is(Kind::list) ? "list_iterator" : "tuple_iterator"; }
  bool next(Value& item) override {
    const auto& items = list.as<List>().items;
    if (at == items.size()) return false;
    item = items[at++];
    return true;
  }
  const Value list;
  size_t at = 0;
};

struct DictIterator : Iterator {
  DictIterator(Ref<Dict> d, View::Of o) : dict(std::move(d)), of(o) { type = "dict_iterator"; }
  bool next(Value& item) override {
    if (at >= dict->items.size()) return false;
    const auto& [key, value] = dict->items[at++];
    if (of == View::Of::items)
      item = dict->heap->tuple({key, value});
    else
      item = of == View::Of::keys ? key : value;
    return true;
  }
  const Ref<Dict> dict;
  const View::Of of;
  size_t at = 0;
};

struct RangeIterator : Iterator {
  explicit RangeIterator(const Value& v) : range(v) { type = "range_iterator"; }
  bool next(Value& item) override {
    const auto& r = range.as<Range>();
    if (at == r.size()) return false;
    item = Value::of(r.at(at++));
    return true;
  }
  const Value range;
  int64_t at = 0;
};

struct StringIterator : Iterator {
  explicit StringIterator(const Value& v) : string(v) { type = "str_iterator"; }
  bool next(Value& item) override {
    const std::string& text = text_of(string);
    if (at == text.size()) return false;
    const size_t from = at;
    utf8_next(text, at);
    item = string.object->heap->string(text.substr(from, at - from));
    return true;
  }
  const Value string;
  size_t at = 0;
};

}  // namespace

Ref<Iterator> iterate_items(Heap& heap, std::vector<Value> items, const char* type) {
  const size_t size = items.size() * sizeof(Value);
  Ref<VectorIterator> it = heap.make<VectorIterator>(size, std::move(items), type);
  for (const Value& v : it->items) heap.hold(*it, v);
  return it;
}

Ref<Iterator> iterate(Heap& heap, const Value& v) {
  const auto held = [&](Ref<Iterator> it) {
    heap.hold(*it, v);
    return it;
  };
  switch (v.kind) {
    case Kind::undefined:
      return iterate_items(heap, {}, "generator");
    case Kind::list:
    case Kind::tuple:
      return held(heap.make<ListIterator>(0, v));
    case Kind::dict:
      return held(heap.make<DictIterator>(0, Ref<Dict>(&v.as<Dict>()), View::Of::keys));
    case Kind::view:
      return held(heap.make<DictIterator>(0, v.as<View>().dict, v.as<View>().of));
    case Kind::range:
      return heap.make<RangeIterator>(0, v);
    case Kind::string:
      return heap.make<StringIterator>(0, v);
    case Kind::generator:
      return Ref<Iterator>(&v.as<Iterator>());
    case Kind::loop:
      fail(Fault::unsupported, "walking `loop` itself");
    default:
      fail(Fault::type, "'{}' object is not iterable", type_name(v));
  }
}

bool can_iterate(const Value& v) {
  switch (v.kind) {
    case Kind::undefined:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::view:
    case Kind::range:
    case Kind::string:
    case Kind::generator:
    case Kind::loop:
      return true;
    default:
      return false;
  }
}

std::vector<Value> to_vector(Heap& heap, const Value& v) {
  if (v.is_sequence()) {
    heap.spend_bytes(v.as<List>().items.size() * sizeof(Value));
    return v.as<List>().items;
  }
  std::vector<Value> items;
  const Ref<Iterator> it = iterate(heap, v);
  for (Value item; it->next(item);) {
    heap.spend(1);
    // These are on no object's account yet: the bound of a string serves here too.
    heap.check_string(items.size() * sizeof(Value));
    items.push_back(item);
  }
  return items;
}

std::vector<Value> reversed(Heap& heap, const Value& v) {
  switch (v.kind) {
    case Kind::undefined:
    case Kind::list:
    case Kind::tuple:
    case Kind::dict:
    case Kind::view:
    case Kind::range:
    case Kind::string: {
      std::vector<Value> items = to_vector(heap, v);
      std::reverse(items.begin(), items.end());
      return items;
    }
    default:
      fail(Fault::type, "'{}' object is not reversible", type_name(v));
  }
}

int64_t length_of(const Value& v) {
  switch (v.kind) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return char_count(v.as<String>());
    case Kind::list:
    case Kind::tuple:
      return static_cast<int64_t>(v.as<List>().items.size());
    case Kind::dict:
      return static_cast<int64_t>(v.as<Dict>().items.size());
    case Kind::view:
      return static_cast<int64_t>(v.as<View>().dict->items.size());
    case Kind::range:
      return v.as<Range>().size();
    case Kind::loop:
      return v.as<Loop>().size();
    default:
      fail(Fault::type, "object of type '{}' has no len()", type_name(v));
  }
}

bool Loop::peek() {
  if (!after.is(Kind::missing)) return true;
  Value item;
  if (!items || !items->next(item)) return false;
  after = item;
  return true;
}

bool Loop::advance() {
  Value item;
  if (!after.is(Kind::missing)) {
    item = std::exchange(after, Value());
  } else if (!items || !items->next(item)) {
    return false;
  }
  ++index0;
  before = std::exchange(current, item);
  return true;
}

int64_t Loop::size() {
  if (length >= 0) return length;
  std::vector<Value> rest;
  if (items) rest = to_vector(*heap, value_of(items));
  length = static_cast<int64_t>(rest.size()) + index0 + 1 + (after.is(Kind::missing) ? 0 : 1);
  items = iterate_items(*heap, std::move(rest), "list_iterator");
  return length;
}

void Loop::drop() {
  items = Ref<Iterator>();
  before = current = after = changed = Value();
  outer = Ref<Frame>();
}

}  // namespace consonant::jinja
