// SPDX-License-Identifier: Apache-2.0
// Where filters, tests and globals are found, and the tests and globals themselves.
#include "text/jinja/library.hpp"

#include <algorithm>

#include "text/jinja/filters.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

const NativeEntry* find_filter(std::string_view name) {
  for (const auto filters : {text_filters(), item_filters(), choice_filters()})
    for (const NativeEntry& entry : filters)
      if (entry.name == name) return &entry;
  return nullptr;
}

using Test = bool (*)(Interpreter& in, const Value& v, const Bound& args);
struct TestEntry {
  std::string_view name, signature;
  Test run;
};

template <Kind kind>
bool is_kind(Interpreter&, const Value& v, const Bound&) {
  return v.is(kind);
}

template <Op op>
bool compares(Interpreter& in, const Value& v, const Bound& args) {
  return compare(in.heap, op, v, args.value(0));
}

template <int remainder>
bool has_remainder(Interpreter& in, const Value& v, const Bound&) {
  return equal(arithmetic(in, Op::mod, v, Value::of(int64_t{2})), Value::of(int64_t{remainder}));
}

bool divisibleby(Interpreter& in, const Value& v, const Bound& args) {
  return equal(arithmetic(in, Op::mod, v, args.value(0)), Value::of(int64_t{0}));
}

bool is_defined(Interpreter&, const Value& v, const Bound&) { return !v.is(Kind::undefined); }
bool is_true(Interpreter&, const Value& v, const Bound&) { return v.is(Kind::boolean) && v.integer; }
bool is_false(Interpreter&, const Value& v, const Bound&) { return v.is(Kind::boolean) && !v.integer; }
bool is_number(Interpreter&, const Value& v, const Bound&) { return v.is_number(); }
bool is_iterable(Interpreter&, const Value& v, const Bound&) { return can_iterate(v); }
bool is_escaped(Interpreter&, const Value& v, const Bound&) { return v.is(Kind::string) && v.as<String>().markup; }
bool is_same(Interpreter&, const Value& v, const Bound& args) { return identical(v, args.value(0)); }
bool lower_test(Interpreter&, const Value& v, const Bound&) { return is_lower(to_text(v)); }
bool upper_test(Interpreter&, const Value& v, const Bound&) { return is_upper(to_text(v)); }

bool is_sequence(Interpreter&, const Value& v, const Bound&) {
  return v.is_sequence() || v.is(Kind::string) || v.is(Kind::dict) || v.is(Kind::range) || v.is(Kind::undefined);
}

bool is_callable(Interpreter&, const Value& v, const Bound&) {
  return v.is(Kind::macro) || v.is(Kind::function) || v.is(Kind::loop) || v.is(Kind::joiner) || v.is(Kind::undefined);
}

bool is_in(Interpreter& in, const Value& v, const Bound& args) { return contains(in.heap, args.value(0), v); }

bool is_filter(Interpreter&, const Value& v, const Bound&) { return v.is(Kind::string) && has_filter(text_of(v)); }
bool is_test(Interpreter&, const Value& v, const Bound&) { return v.is(Kind::string) && has_test(text_of(v)); }

constexpr TestEntry tests[] = {
    {"boolean", "", is_kind<Kind::boolean>},
    {"callable", "/", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num!", divisibleby},
    {"escaped", "", is_escaped},
    {"even", "", has_remainder<0>},
    {"false", "", is_false},
    {"filter", "", is_filter},
    {"float", "", is_kind<Kind::real>},
    {"in", "seq!", is_in},
    {"integer", "", is_kind<Kind::integer>},
    {"iterable", "", is_iterable},
    {"lower", "", lower_test},
    {"mapping", "", is_kind<Kind::dict>},
    {"none", "", is_kind<Kind::none>},
    {"number", "", is_number},
    {"odd", "", has_remainder<1>},
    {"sameas", "other!", is_same},
    {"sequence", "", is_sequence},
    {"string", "", is_kind<Kind::string>},
    {"test", "", is_test},
    {"true", "", is_true},
    {"undefined", "", is_kind<Kind::undefined>},
    {"upper", "", upper_test},
    {"==", "/ b!", compares<Op::eq>},
    {"eq", "/ b!", compares<Op::eq>},
    {"equalto", "/ b!", compares<Op::eq>},
    {"!=", "/ b!", compares<Op::ne>},
    {"ne", "/ b!", compares<Op::ne>},
    {">", "/ b!", compares<Op::gt>},
    {"gt", "/ b!", compares<Op::gt>},
    {"greaterthan", "/ b!", compares<Op::gt>},
    {">=", "/ b!", compares<Op::ge>},
    {"ge", "/ b!", compares<Op::ge>},
    {"<", "/ b!", compares<Op::lt>},
    {"lt", "/ b!", compares<Op::lt>},
    {"lessthan", "/ b!", compares<Op::lt>},
    {"<=", "/ b!", compares<Op::le>},
    {"le", "/ b!", compares<Op::le>},
};

const TestEntry* find_test(std::string_view name) {
  for (const TestEntry& entry : tests)
    if (entry.name == name) return &entry;
  return nullptr;
}

// dict(...) and what namespace(...) starts with.
Ref<Dict> make_dict(Interpreter& in, const Args& args) {
  if (args.positional.size() > 1) fail(Fault::type, "dict expected at most 1 argument, got {}", args.positional.size());
  Ref<Dict> dict = in.heap.dict();
  for (const Value& from : args.positional) {
    if (from.is(Kind::dict)) {
      for (const auto& [key, value] : from.as<Dict>().items) in.heap.set(*dict, key, value);
      continue;
    }
    for (const Value& item : to_vector(in.heap, from)) {
      const std::vector<Value> pair = to_vector(in.heap, item);
      if (pair.size() != 2)
        fail(Fault::value, "dictionary update sequence element has length {}; 2 is required", pair.size());
      in.heap.set(*dict, pair[0], pair[1]);
    }
  }
  for (const auto& [name, value] : args.named) in.heap.set(*dict, in.heap.string(name), value);
  return dict;
}

Value dict_global(Interpreter& in, const Value&, const Bound& args) { return value_of(make_dict(in, args.all)); }

Value namespace_global(Interpreter& in, const Value&, const Bound& args) {
  Ref<Space> space = in.heap.make<Space>(0, make_dict(in, args.all));
  in.heap.keep(space);
  return Value(Kind::space, space);
}

Value range_global(Interpreter& in, const Value&, const Bound& args) {
  int64_t start = 0, stop = args.integer(0), step = 1;
  if (args.has(1)) {
    start = stop;
    stop = args.integer(1);
  }
  if (args.has(2)) step = args.integer(2);
  if (step == 0) fail(Fault::value, "range() arg 3 must not be zero");
  constexpr int64_t far = int64_t{1} << 61;  // so that no item and no length overflows
  if (std::max({std::abs(start / 2), std::abs(stop / 2), std::abs(step / 2)}) >= far / 2)
    fail(Fault::unsupported, "a range with numbers beyond 2^61");
  Ref<Range> range = in.heap.make<Range>(0, start, stop, step);
  if (range->size() > max_range)
    fail(Fault::overflow, "Range too big. The sandbox blocks ranges larger than {}.", max_range);
  return Value(Kind::range, range);
}

Value cycler_global(Interpreter& in, const Value&, const Bound& args) {
  if (!args.all.named.empty()) fail(Fault::type, "cycler() takes no keyword arguments");
  if (args.all.positional.empty()) fail(Fault::runtime, "at least one item has to be provided");
  Ref<Cycler> cycler = in.heap.make<Cycler>(args.all.positional.size() * sizeof(Value));
  cycler->items = args.all.positional;
  for (const Value& v : cycler->items) in.heap.hold(*cycler, v);
  return Value(Kind::cycler, cycler);
}

Value joiner_global(Interpreter& in, const Value&, const Bound& args) {
  Ref<Joiner> joiner = in.heap.make<Joiner>(0);
  joiner->separator = args.has(0) ? args.value(0) : in.heap.string(", ");
  in.heap.hold(*joiner, joiner->separator);
  return Value(Kind::joiner, joiner);
}

Value raise_exception(Interpreter&, const Value&, const Bound& args) {
  throw Failure(Fault::refused, to_text(args.value(0)));
}

Value strftime_now(Interpreter& in, const Value&, const Bound& args) {
  return in.heap.string(in.now().format(args.text(0)));
}

Value lipsum(Interpreter&, const Value&, const Bound&) { fail(Fault::unsupported, "lipsum() isn't supported"); }

constexpr NativeEntry globals[] = {
    {"range", "/ start! stop step", range_global},
    {"dict", "*", dict_global},
    {"namespace", "*", namespace_global},
    {"cycler", "*", cycler_global},
    {"joiner", "sep", joiner_global},
    {"raise_exception", "message!", raise_exception},
    {"strftime_now", "format!", strftime_now},
    {"lipsum", "*", lipsum},
};

}  // namespace

bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }
bool has_test(std::string_view name) { return find_test(name) != nullptr; }

Value call_filter(Interpreter& in, std::string_view name, const Value& subject, const Args& args) {
  const NativeEntry* entry = find_filter(name);
  if (!entry) fail(Fault::runtime, "there is no filter '{}'", name);
  return entry->run(in, subject, Bound(name, entry->signature, args));
}

bool call_test(Interpreter& in, std::string_view name, const Value& subject, const Args& args) {
  const TestEntry* entry = find_test(name);
  if (!entry) fail(Fault::runtime, "there is no test '{}'", name);
  return entry->run(in, subject, Bound(name, entry->signature, args));
}

Value global(Interpreter& in, const std::string& name) {
  for (const NativeEntry& entry : globals)
    if (entry.name == name) return bind(in.heap, entry, Value());
  return {};
}

}  // namespace consonant::jinja
