// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <unordered_set>

#include "text/jinja/filters.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

AttributePath::AttributePath(const Value& attribute) {
  if (attribute.is(Kind::none) || attribute.is(Kind::missing)) return;
  if (!attribute.is(Kind::string)) {
    parts_.emplace_back("", attribute);
    return;
  }
  const std::string& text = text_of(attribute);
  for (size_t at = 0;;) {
    const size_t end = std::min(text.find('.', at), text.size());
    const std::string part = text.substr(at, end - at);
    int64_t index = 0;
    if (!part.empty() && part.find_first_not_of("0123456789") == std::string::npos && parse_integer(part, 10, index))
      parts_.emplace_back(part, Value::of(index));
    else
      parts_.emplace_back(part, Value());
    if (end == text.size()) return;
    at = end + 1;
  }
}

Value AttributePath::find(Interpreter& in, Value item, const Value* otherwise) const {
  for (const auto& [name, index] : parts_) {
    item = in.getitem(item, index.is(Kind::missing) ? in.heap.string(name) : index);
    if (otherwise && !otherwise->is(Kind::none) && item.is(Kind::undefined)) item = *otherwise;
  }
  return item;
}

Value ignore_case(Heap& heap, const Value& v) {
  return v.is(Kind::string) ? heap.string(to_lower(text_of(v)), v.as<String>().markup) : v;
}

namespace {

// Items that are computed when the first of them is asked for, as a Python generator's are.
struct LateItems : Iterator {
  explicit LateItems(std::function<std::vector<Value>()> c) : compute(std::move(c)) {}
  bool next(Value& item) override {
    if (compute) {
      items = compute();
      compute = nullptr;
      for (const Value& v : items) heap->hold(*this, v);
    }
    if (at == items.size()) return false;
    item = items[at++];
    return true;
  }
  std::function<std::vector<Value>()> compute;
  std::vector<Value> items;
  size_t at = 0;
};

Value late(Interpreter& in, const Value& source, std::function<std::vector<Value>()> compute) {
  Ref<LateItems> it = in.heap.make<LateItems>(0, std::move(compute));
  in.heap.hold(*it, source);
  return value_of(Ref<Iterator>(it));
}

Value length(Interpreter&, const Value& self, const Bound&) { return Value::of(length_of(self)); }

Value first(Interpreter& in, const Value& self, const Bound&) {
  Value item;
  if (iterate(in.heap, self)->next(item)) return item;
  return in.heap.undefined("No first item, sequence was empty.");
}

Value last(Interpreter& in, const Value& self, const Bound&) {
  if (self.is_sequence() && !self.as<List>().items.empty()) return self.as<List>().items.back();
  const std::vector<Value> items = reversed(in.heap, self);
  return items.empty() ? in.heap.undefined("No last item, sequence was empty.") : items.front();
}

Value list(Interpreter& in, const Value& self, const Bound&) { return in.heap.list(to_vector(in.heap, self)); }

Value join(Interpreter& in, const Value& self, const Bound& args) {
  const std::string separator = args.has(0) ? to_text(args.value(0)) : "";
  const AttributePath path(args.value(1));
  std::string out;
  bool first = true;
  const Ref<Iterator> it = iterate(in.heap, self);
  for (Value item; it->next(item);) {
    in.heap.spend(1);
    if (!std::exchange(first, false)) out += separator;
    out += to_text(path.find(in, item));
    in.heap.check_string(out.size());
  }
  return in.heap.string(std::move(out));
}

Value default_value(Interpreter& in, const Value& self, const Bound& args) {
  if (!self.is(Kind::undefined) && (!args.boolean(1) || truth(self))) return self;
  return args.has(0) ? args.value(0) : in.heap.string("");
}

Value reverse(Interpreter& in, const Value& self, const Bound&) {
  const Value none = Value::none();
  if (self.is(Kind::string)) return slice(in.heap, self, none, none, Value::of(int64_t{-1}));
  if (self.is(Kind::generator)) {
    std::vector<Value> items = to_vector(in.heap, self);
    std::reverse(items.begin(), items.end());
    return in.heap.list(std::move(items));
  }
  if (!can_iterate(self)) fail(Fault::type, "argument must be iterable");
  return value_of(iterate_items(in.heap, reversed(in.heap, self), "reversed"));
}

Value items(Interpreter& in, const Value& self, const Bound&) {
  return late(in, self, [&in, self] {
    if (self.is(Kind::undefined)) return std::vector<Value>();
    if (!self.is(Kind::dict)) fail(Fault::type, "Can only get item pairs from a mapping.");
    std::vector<Value> pairs;
    for (const auto& [key, value] : self.as<Dict>().items) pairs.push_back(in.heap.tuple({key, value}));
    return pairs;
  });
}

// A stable sort by keys that were computed before.
std::vector<Value> sorted(Heap& heap, std::vector<std::pair<Value, Value>> keyed, bool backwards) {
  heap.spend(static_cast<int64_t>(keyed.size()));
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& a, const auto& b) {
    heap.spend(1);
    return backwards ? less(b.first, a.first) : less(a.first, b.first);
  });
  std::vector<Value> out;
  out.reserve(keyed.size());
  for (auto& item : keyed) out.push_back(std::move(item.second));
  return out;
}

Value dictsort(Interpreter& in, const Value& self, const Bound& args) {
  const std::string by = args.has(1) ? to_text(args.value(1)) : "key";
  if (by != "key" && by != "value") fail(Fault::value, "You can only sort by either \"key\" or \"value\"");
  if (self.is(Kind::undefined)) fail_undefined(self);
  if (!self.is(Kind::dict)) fail(Fault::type, "'{}' object has no attribute 'items'", type_name(self));
  std::vector<std::pair<Value, Value>> keyed;
  for (const auto& [key, value] : self.as<Dict>().items) {
    const Value& sort_by = by == "key" ? key : value;
    keyed.emplace_back(args.boolean(0) ? sort_by : ignore_case(in.heap, sort_by), in.heap.tuple({key, value}));
  }
  return in.heap.list(sorted(in.heap, std::move(keyed), args.boolean(2)));
}

Value sort(Interpreter& in, const Value& self, const Bound& args) {
  std::vector<AttributePath> paths;
  if (args.some(2) && args.value(2).is(Kind::string)) {
    const std::string& text = args.text(2);
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      paths.emplace_back(in.heap.string(text.substr(at, end - at)));
      at = end + 1;
    }
  } else {
    paths.emplace_back(args.value(2));
  }
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : to_vector(in.heap, self)) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) {
      const Value part = path.find(in, item);
      key.push_back(args.boolean(1) ? part : ignore_case(in.heap, part));
    }
    keyed.emplace_back(in.heap.list(std::move(key)), item);
  }
  return in.heap.list(sorted(in.heap, std::move(keyed), args.boolean(0)));
}

Value unique(Interpreter& in, const Value& self, const Bound& args) {
  const bool case_sensitive = args.boolean(0);
  const Value attribute = args.value(1);
  return late(in, self, [&in, self, case_sensitive, attribute] {
    const AttributePath path(attribute);
    std::unordered_set<Value, ValueHash, ValueEqual> seen;
    std::vector<Value> out;
    for (const Value& item : to_vector(in.heap, self)) {
      const Value key = path.find(in, item);
      if (seen.insert(case_sensitive ? key : ignore_case(in.heap, key)).second) out.push_back(item);
    }
    return out;
  });
}

Value extreme(Interpreter& in, const Value& self, const Bound& args) {
  const bool smallest = args.function() == "min";
  const AttributePath path(args.value(1));
  const std::vector<Value> all = to_vector(in.heap, self);
  if (all.empty()) return in.heap.undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const Value& item) {
    const Value key = path.find(in, item);
    return args.boolean(0) ? key : ignore_case(in.heap, key);
  };
  Value best = all.front(), best_key = key_of(best);
  for (size_t i = 1; i < all.size(); ++i) {
    const Value key = key_of(all[i]);
    if (smallest ? !less(key, best_key) : !compare(key, best_key, ">")) continue;
    best = all[i];
    best_key = key;
  }
  return best;
}

Value sum(Interpreter& in, const Value& self, const Bound& args) {
  const AttributePath path(args.value(0));
  Value total = args.has(1) ? args.value(1) : Value::of(int64_t{0});
  if (total.is(Kind::string)) fail(Fault::type, "sum() can't sum strings [use ''.join(seq) instead]");
  const Ref<Iterator> it = iterate(in.heap, self);
  for (Value item; it->next(item);) {
    in.heap.spend(1);
    total = arithmetic(in, Op::add, total, path.find(in, item));
  }
  return total;
}

Value batch(Interpreter& in, const Value& self, const Bound& args) {
  const int64_t size = args.integer(0);
  const Value fill = args.value(1);
  return late(in, self, [&in, self, size, fill] {
    std::vector<Value> rows, row;
    for (const Value& item : to_vector(in.heap, self)) {
      if (static_cast<int64_t>(row.size()) == size) rows.push_back(in.heap.list(std::exchange(row, {})));
      row.push_back(item);
    }
    if (row.empty()) return rows;
    if (!fill.is(Kind::none) && size > static_cast<int64_t>(row.size())) {
      if (size > max_range) fail(Fault::limit, "batch() of {} items", size);
      row.resize(static_cast<size_t>(size), fill);
    }
    rows.push_back(in.heap.list(std::move(row)));
    return rows;
  });
}

Value slices(Interpreter& in, const Value& self, const Bound& args) {
  const int64_t count = args.integer(0);
  const Value fill = args.value(1);
  return late(in, self, [&in, self, count, fill] {
    const std::vector<Value> all = to_vector(in.heap, self);
    const auto size = static_cast<int64_t>(all.size());
    if (count == 0) fail(Fault::zero_division, "integer division or modulo by zero");
    if (count > max_range) fail(Fault::limit, "slice() into {} lists", count);
    std::vector<Value> rows;
    const int64_t each = checked_integer(Op::floordiv, size, count), extra = checked_integer(Op::mod, size, count);
    int64_t at = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t end = at + each + (i < extra ? 1 : 0);
      std::vector<Value> row(all.begin() + at, all.begin() + end);
      if (!fill.is(Kind::none) && i >= extra) row.push_back(fill);
      rows.push_back(in.heap.list(std::move(row)));
      at = end;
    }
    return rows;
  });
}

Value groupby(Interpreter& in, const Value& self, const Bound& args) {
  const AttributePath path(args.value(0));
  const Value otherwise = args.value(1);
  const bool case_sensitive = args.boolean(2);
  const auto key_of = [&](const Value& item) {
    const Value key = path.find(in, item, &otherwise);
    return case_sensitive ? key : ignore_case(in.heap, key);
  };
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : to_vector(in.heap, self)) keyed.emplace_back(key_of(item), item);
  const std::vector<Value> ordered = sorted(in.heap, std::move(keyed), false);
  std::vector<Value> groups;
  for (size_t at = 0; at < ordered.size();) {
    const Value key = key_of(ordered[at]);
    std::vector<Value> members;
    while (at < ordered.size() && equal(key_of(ordered[at]), key)) members.push_back(ordered[at++]);
    if (members.empty()) members.push_back(ordered[at++]);  // a key that isn't equal to itself
    const Value name = case_sensitive ? key : path.find(in, members.front(), &otherwise);
    groups.push_back(in.heap.tuple({name, in.heap.list(std::move(members))}, true));
  }
  return in.heap.list(std::move(groups));
}

constexpr NativeEntry entries[] = {
    {"batch", "linecount! fill_with", batch},
    {"count", "/", length},
    {"d", "default_value boolean", default_value},
    {"default", "default_value boolean", default_value},
    {"dictsort", "case_sensitive by reverse", dictsort},
    {"first", "", first},
    {"groupby", "attribute! default case_sensitive", groupby},
    {"items", "", items},
    {"join", "d attribute", join},
    {"last", "", last},
    {"length", "/", length},
    {"list", "", list},
    {"max", "case_sensitive attribute", extreme},
    {"min", "case_sensitive attribute", extreme},
    {"reverse", "", reverse},
    {"slice", "slices! fill_with", slices},
    {"sort", "reverse case_sensitive attribute", sort},
    {"sum", "attribute start", sum},
    {"unique", "case_sensitive attribute", unique},
};

}  // namespace

std::span<const NativeEntry> item_filters() { return entries; }

}  // namespace consonant::jinja
