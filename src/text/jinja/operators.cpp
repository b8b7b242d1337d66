// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/operators.hpp"

#include <algorithm>
#include <cmath>

#include "text/jinja/interpreter.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

[[noreturn]] void too_large() { fail(Fault::unsupported, "an integer beyond 64 bits"); }

[[noreturn]] void no_operator(Op op, const Value& a, const Value& b) {
  fail(Fault::type, "unsupported operand type(s) for {}: '{}' and '{}'", symbol(op), type_name(a), type_name(b));
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) too_large();
    exponent >>= 1;
    if (exponent && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return result;
}

double real_power(double a, double b) {
  if (a == 0 && b < 0) fail(Fault::zero_division, "0.0 cannot be raised to a negative power");
  if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::floor(b) != b)
    fail(Fault::unsupported, "a negative number to a fractional power is complex");
  const double r = std::pow(a, b);
  if (std::isinf(r) && std::isfinite(a) && std::isfinite(b)) fail(Fault::overflow, "the result of ** is too large");
  return r;
}

// Rounds to minus infinity, as CPython computes it.
std::pair<double, double> real_divmod(double a, double b) {
  double mod = std::fmod(a, b);
  double div = (a - mod) / b;
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) {
      mod += b;
      div -= 1;
    }
  } else {
    mod = std::copysign(0.0, b);
  }
  double floor = std::copysign(0.0, a / b);
  if (div != 0) {
    floor = std::floor(div);
    if (div - floor > 0.5) floor += 1;
  }
  return {floor, mod};
}

Value real_arithmetic(Op op, double a, double b) {
  switch (op) {
    case Op::add:
      return Value::of(a + b);
    case Op::sub:
      return Value::of(a - b);
    case Op::mul:
      return Value::of(a * b);
    case Op::pow:
      return Value::of(real_power(a, b));
    default:
      break;
  }
  if (b == 0) fail(Fault::zero_division, "float {} by zero", op == Op::div ? "division" : "floor division or modulo");
  if (op == Op::div) return Value::of(a / b);
  const auto [floor, mod] = real_divmod(a, b);
  return Value::of(op == Op::mod ? mod : floor);
}

Value number_arithmetic(Op op, const Value& a, const Value& b) {
  if (a.is(Kind::real) || b.is(Kind::real)) return real_arithmetic(op, a.as_real(), b.as_real());
  if (op == Op::pow && b.integer < 0) return Value::of(real_power(a.as_real(), b.as_real()));
  if (op == Op::div) {
    if (b.integer == 0) fail(Fault::zero_division, "division by zero");
    return Value::of(static_cast<double>(static_cast<long double>(a.integer) / static_cast<long double>(b.integer)));
  }
  return Value::of(checked_integer(op, a.integer, b.integer));
}

Value repeated(Heap& heap, const Value& v, int64_t times) {
  times = std::max<int64_t>(times, 0);
  const auto size = static_cast<uint64_t>(times);
  if (v.is(Kind::string)) {
    const std::string& text = text_of(v);
    if (!text.empty() && size > heap.limits.output / text.size()) heap.check_string(SIZE_MAX);
    std::string out;
    out.reserve(text.size() * size);
    for (uint64_t i = 0; i < size && !text.empty(); ++i) out += text;
    return heap.string(std::move(out), v.as<String>().markup);
  }
  const auto& items = v.as<List>().items;
  if (!items.empty() && size > heap.limits.output / sizeof(Value) / items.size()) heap.check_string(SIZE_MAX);
  std::vector<Value> out;
  for (uint64_t i = 0; i < size && !items.empty(); ++i) out.insert(out.end(), items.begin(), items.end());
  return v.is(Kind::list) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
}

Value concatenated(Heap& heap, const Value& a, const Value& b) {
  if (a.is(Kind::string) && b.is(Kind::string)) {
    const bool ma = a.as<String>().markup, mb = b.as<String>().markup;
    heap.check_string(text_of(a).size() + text_of(b).size());
    if (ma == mb) return heap.string(text_of(a) + text_of(b), ma);
    return heap.string((ma ? text_of(a) : escape_html(text_of(a))) + (mb ? text_of(b) : escape_html(text_of(b))), true);
  }
  if (a.kind == b.kind) {
    std::vector<Value> items = a.as<List>().items;
    const auto& more = b.as<List>().items;
    items.insert(items.end(), more.begin(), more.end());
    return a.is(Kind::list) ? heap.list(std::move(items)) : heap.tuple(std::move(items));
  }
  const char* type = a.is(Kind::string) ? "str" : type_name(a);
  fail(Fault::type, "can only concatenate {} (not \"{}\") to {}", type, type_name(b), type);
}

}  // namespace

int64_t checked_integer(Op op, int64_t a, int64_t b) {
  int64_t r = 0;
  switch (op) {
    case Op::add:
      if (__builtin_add_overflow(a, b, &r)) too_large();
      return r;
    case Op::sub:
      if (__builtin_sub_overflow(a, b, &r)) too_large();
      return r;
    case Op::mul:
      if (__builtin_mul_overflow(a, b, &r)) too_large();
      return r;
    case Op::pow:
      return integer_power(a, b);
    default:
      break;
  }
  if (b == 0) fail(Fault::zero_division, "integer floor division or modulo by zero");
  if (b == -1) {
    if (op == Op::mod) return 0;
    if (a == INT64_MIN) too_large();
    return -a;
  }
  const int64_t mod = a % b, fix = mod != 0 && (mod < 0) != (b < 0) ? 1 : 0;
  return op == Op::mod ? mod + fix * b : a / b - fix;
}

Value arithmetic(Interpreter& in, Op op, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return number_arithmetic(op, a, b);
  if (a.is(Kind::undefined)) fail_undefined(a);
  if (op == Op::mod && a.is(Kind::string)) return format_printf(in, a, b);
  if (b.is(Kind::undefined)) fail_undefined(b);
  const auto is_series = [](const Value& v) { return v.is(Kind::string) || v.is_sequence(); };
  if (op == Op::add && is_series(a)) return concatenated(in.heap, a, b);
  if (op == Op::mul) {
    if (is_series(a) && b.is_integral()) return repeated(in.heap, a, b.integer);
    if (is_series(b) && a.is_integral()) return repeated(in.heap, b, a.integer);
    if (is_series(a) || is_series(b))
      fail(Fault::type, "can't multiply sequence by non-int of type '{}'", type_name(is_series(a) ? b : a));
  }
  no_operator(op, a, b);
}

Value negated(const Value& v) {
  if (v.is(Kind::real)) return Value::of(-v.real);
  if (v.is_integral()) return Value::of(checked_integer(Op::sub, 0, v.integer));
  if (v.is(Kind::undefined)) fail_undefined(v);
  fail(Fault::type, "bad operand type for unary -: '{}'", type_name(v));
}

Value positive(const Value& v) {
  if (v.is(Kind::real)) return v;
  if (v.is_integral()) return Value::of(v.integer);
  if (v.is(Kind::undefined)) fail_undefined(v);
  fail(Fault::type, "bad operand type for unary +: '{}'", type_name(v));
}

namespace {

bool view_contains(const View& view, const Value& item) {
  const auto& pairs = view.dict->items;
  switch (view.of) {
    case View::Of::keys:
      return view.dict->find(item) != nullptr;
    case View::Of::values:
      return std::any_of(pairs.begin(), pairs.end(), [&](const auto& p) { return equal(p.second, item); });
    case View::Of::items:
      break;
  }
  if (!item.is(Kind::tuple) || item.as<List>().items.size() != 2) return false;
  const Value* found = view.dict->find(item.as<List>().items[0]);
  return found && equal(*found, item.as<List>().items[1]);
}

bool range_contains(const Range& range, const Value& item) {
  if (!item.is_number()) return false;
  const double d = item.as_real();
  if (item.is(Kind::real) && (std::floor(d) != d || std::fabs(d) > 9e18)) return false;
  const int64_t i = item.is(Kind::real) ? static_cast<int64_t>(d) : item.integer;
  if (range.step > 0 ? i < range.start || i >= range.stop : i > range.start || i <= range.stop) return false;
  return static_cast<__int128_t>(static_cast<__int128_t>(i) - range.start) % range.step == 0;
}

}  // namespace

bool contains(Heap& heap, const Value& container, const Value& item) {
  switch (container.kind) {
    case Kind::string:
      if (!item.is(Kind::string))
        fail(Fault::type, "'in <string>' requires string as left operand, not {}", type_name(item));
      heap.spend_bytes(text_of(container).size());
      return text_of(container).find(text_of(item)) != std::string::npos;
    case Kind::list:
    case Kind::tuple: {
      const auto& items = container.as<List>().items;
      heap.spend_bytes(items.size() * sizeof(Value));
      return std::any_of(items.begin(), items.end(), [&](const Value& v) { return equal(v, item); });
    }
    case Kind::dict:
      return container.as<Dict>().find(item) != nullptr;
    case Kind::view:
      return view_contains(container.as<View>(), item);
    case Kind::range:
      return range_contains(container.as<Range>(), item);
    case Kind::undefined:
      return false;
    case Kind::generator: {
      Value v;
      while (container.as<Iterator>().next(v)) {
        heap.spend(1);
        if (equal(v, item)) return true;
      }
      return false;
    }
    default:
      fail(Fault::type, "argument of type '{}' is not iterable", type_name(container));
  }
}

bool compare(Heap& heap, Op op, const Value& a, const Value& b) {
  if (a.is(Kind::string) && b.is(Kind::string)) heap.spend_bytes(std::min(text_of(a).size(), text_of(b).size()));
  switch (op) {
    case Op::eq:
      return equal(a, b);
    case Op::ne:
      return !equal(a, b);
    case Op::in:
      return contains(heap, b, a);
    case Op::not_in:
      return !contains(heap, b, a);
    default:
      return compare(a, b, symbol(op));
  }
}

namespace {

// Python's slice.indices(): where the walk starts and stops, how many it takes.
struct Walk {
  int64_t start, stop, count, step;
};

Walk walk_of(const Value& start, const Value& stop, const Value& step, int64_t size) {
  const auto index = [](const Value& v) {
    if (!v.is_integral()) {
      if (v.is(Kind::undefined)) fail(Fault::type, "slice indices must be integers or None, not Undefined");
      fail(Fault::type, "slice indices must be integers or None or have an __index__ method");
    }
    return v.integer;
  };
  const int64_t by = step.is(Kind::none) ? 1 : index(step);
  if (by == 0) fail(Fault::value, "slice step cannot be zero");
  const auto clamp = [&](const Value& v, int64_t otherwise) {
    if (v.is(Kind::none)) return otherwise;
    int64_t i = index(v);
    if (i < 0) i = std::max<int64_t>(i < -size ? -1 : i + size, by < 0 ? -1 : 0);
    return std::min(i, by < 0 ? size - 1 : size);
  };
  const int64_t from = clamp(start, by < 0 ? size - 1 : 0), to = clamp(stop, by < 0 ? -1 : size);
  const int64_t distance = by > 0 ? to - from : from - to;
  if (distance <= 0) return {from, to, 0, by};
  const uint64_t pace = by > 0 ? static_cast<uint64_t>(by) : -static_cast<uint64_t>(by);
  return {from, to, static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / pace + 1), by};
}

Value slice_string(Heap& heap, const Value& v, const Walk& walk) {
  const auto& s = v.as<String>();
  if (walk.count == 0) return heap.string("", s.markup);
  if (walk.step == 1) {
    const size_t from = byte_offset(s, walk.start);
    const size_t length = static_cast<int64_t>(s.text.size()) == char_count(s)
                              ? static_cast<size_t>(walk.count)
                              : byte_offset(std::string_view(s.text).substr(from), walk.count);
    heap.spend_bytes(from);
    return heap.string(s.text.substr(from, length), s.markup);
  }
  heap.spend_bytes(s.text.size() * 4);
  const std::u32string chars = decode(s.text);
  std::u32string out;
  for (int64_t i = 0, at = walk.start; i < walk.count; ++i) {
    out.push_back(chars[static_cast<size_t>(at)]);
    if (i + 1 < walk.count) at += walk.step;
  }
  return heap.string(encode(out), s.markup);
}

}  // namespace

Value slice(Heap& heap, const Value& object, const Value& start, const Value& stop, const Value& step) {
  switch (object.kind) {
    case Kind::undefined:
      fail_undefined(object);
    case Kind::string:
      return slice_string(heap, object, walk_of(start, stop, step, length_of(object)));
    case Kind::list:
    case Kind::tuple: {
      const Walk walk = walk_of(start, stop, step, length_of(object));
      std::vector<Value> out;
      for (int64_t i = 0, at = walk.start; i < walk.count; ++i) {
        out.push_back(object.as<List>().items[static_cast<size_t>(at)]);
        if (i + 1 < walk.count) at += walk.step;
      }
      return object.is(Kind::list) ? heap.list(std::move(out)) : heap.tuple(std::move(out));
    }
    case Kind::range: {
      const auto& r = object.as<Range>();
      const Walk walk = walk_of(start, stop, step, r.size());
      const int64_t by = checked_integer(Op::mul, r.step, walk.step);
      return Value(Kind::range, heap.make<Range>(0, r.at(walk.start), r.at(walk.stop), by));
    }
    case Kind::dict:
      fail(Fault::type, "unhashable type: 'slice'");
    default:
      fail(Fault::type, "'{}' object is not subscriptable", type_name(object));
  }
}

}  // namespace consonant::jinja
