// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/jinja/filters.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/operators.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

bool is_markup(const Value& v) { return v.is(Kind::string) && v.as<String>().markup; }

// A filter that is the method of str with its name.
Value by_method(Interpreter& in, const Value& self, const Bound& args) {
  return in.call(bind(in.heap, *find_string_method(args.function()), soft_text(in.heap, self)), args.all);
}

Value center(Interpreter& in, const Value& self, const Bound& args) {
  return in.call(bind(in.heap, *find_string_method("center"), soft_text(in.heap, self)),
                 {{Value::of(args.integer(0, 80))}, {}});
}

Value trim(Interpreter& in, const Value& self, const Bound& args) {
  const Value text = soft_text(in.heap, self);
  return in.heap.string(std::string(strip(text_of(text), Side::both, args.some(0) ? &args.text(0) : nullptr)),
                        is_markup(text));
}

// Words begin after spaces and after - ( { [ <.
Value title(Interpreter& in, const Value& self, const Bound&) {
  const std::u32string chars = decode(to_text(self));
  std::string out;
  const auto separates = [](char32_t c) {
    return is_space(c) || std::u32string_view(U"-({[<").find(c) != std::u32string_view::npos;
  };
  for (size_t at = 0; at < chars.size();) {
    size_t end = at + 1;
    while (end < chars.size() && separates(chars[end]) == separates(chars[at])) ++end;
    out += to_upper(encode(chars.substr(at, 1)));
    out += to_lower(encode(chars.substr(at + 1, end - at - 1)));
    at = end;
  }
  return in.heap.string(std::move(out));
}

Value replace(Interpreter& in, const Value& self, const Bound& args) {
  return in.heap.string(replaced(in.heap, to_text(self), to_text(args.value(0)), to_text(args.value(1)),
                                 args.some(2) ? args.integer(2) : -1));
}

Value string(Interpreter& in, const Value& self, const Bound&) { return soft_text(in.heap, self); }

Value safe(Interpreter& in, const Value& self, const Bound&) { return in.heap.string(to_text(self), true); }

Value escape_filter(Interpreter& in, const Value& self, const Bound&) { return escape(in.heap, self); }

Value forceescape(Interpreter& in, const Value& self, const Bound&) {
  return in.heap.string(escape_html(to_text(self)), true);
}

Value format(Interpreter& in, const Value& self, const Bound& args) {
  if (!args.all.positional.empty() && !args.all.named.empty())
    fail(Fault::type, "can't handle positional and keyword arguments at the same time");
  if (args.all.named.empty()) return format_printf(in, soft_text(in.heap, self), in.heap.tuple(args.all.positional));
  Ref<Dict> dict = in.heap.dict();
  for (const auto& [key, value] : args.all.named) in.heap.set(*dict, in.heap.string(key), value);
  return format_printf(in, soft_text(in.heap, self), value_of(dict));
}

Value indent(Interpreter& in, const Value& self, const Bound& args) {
  if (self.is(Kind::undefined)) fail_undefined(self);
  if (!self.is(Kind::string)) fail(Fault::type, "indent() needs a string, not {}", type_name(self));
  std::string by;
  if (args.has(0) && args.value(0).is(Kind::string)) {
    by = args.text(0);
  } else {
    const auto width = static_cast<size_t>(std::clamp<int64_t>(args.integer(0, 4), 0, INT32_MAX));
    in.heap.check_string(width);
    by.assign(width, ' ');
  }
  const bool first = args.boolean(1), blank = args.boolean(2);
  const std::string text = text_of(self) + "\n";
  std::string out;
  bool at_first = true;
  for (const auto line : split_lines(text, false)) {
    if (!at_first) out += "\n";
    if (at_first ? first : blank || !line.empty()) out += by;
    out += line;
    at_first = false;
    in.heap.check_string(out.size());
  }
  return in.heap.string(std::move(out), is_markup(self));
}

Value truncate(Interpreter& in, const Value& self, const Bound& args) {
  const int64_t length = args.integer(0, 255), leeway = args.some(3) ? args.integer(3) : 5;
  const Value end = args.has(2) ? args.value(2) : in.heap.string("...");
  const int64_t end_length = length_of(end);
  if (length < end_length) fail(Fault::value, "expected length >= {}, got {}", end_length, length);
  if (leeway < 0) fail(Fault::value, "expected leeway >= 0, got {}", leeway);
  if (length_of(self) <= checked_integer(Op::add, length, leeway)) return self;
  const Value none = Value::none();
  Value cut = slice(in.heap, self, none, Value::of(length - end_length), none);
  if (!args.boolean(1)) {
    if (!cut.is(Kind::string)) fail(Fault::type, "truncate() needs a string, not {}", type_name(self));
    cut = in.heap.string(text_of(cut).substr(0, text_of(cut).rfind(' ')), is_markup(cut));
  }
  return arithmetic(in, Op::add, cut, end);
}

Value wordcount(Interpreter& in, const Value& self, const Bound&) {
  const std::string text = to_text(self);
  in.heap.spend_bytes(text.size());
  int64_t words = 0;
  bool within = false;
  for (const char32_t c : decode(text)) {
    const bool word = is_word(c);
    words += word && !within;
    within = word;
  }
  return Value::of(words);
}

std::string quoted(const std::string& text, bool query) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("_.-~").find(c) != std::string_view::npos || (c == '/' && !query);
    if (plain)
      out.push_back(c);
    else if (c == ' ' && query)
      out.push_back('+');
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Value urlencode(Interpreter& in, const Value& self, const Bound&) {
  if (self.is(Kind::string) || !can_iterate(self)) return in.heap.string(quoted(to_text(self), false));
  std::string out;
  const auto add = [&](const Value& key, const Value& value) {
    if (!out.empty()) out += "&";
    out += quoted(to_text(key), true) + "=" + quoted(to_text(value), true);
    in.heap.check_string(out.size());
  };
  if (self.is(Kind::dict)) {
    for (const auto& [key, value] : self.as<Dict>().items) add(key, value);
    return in.heap.string(std::move(out));
  }
  for (const Value& item : to_vector(in.heap, self)) {
    const std::vector<Value> pair = to_vector(in.heap, item);
    if (pair.size() != 2) fail(Fault::value, "urlencode() needs pairs, not {} values", pair.size());
    add(pair[0], pair[1]);
  }
  return in.heap.string(std::move(out));
}

Value real_as_integer(double d) {
  if (std::isinf(d)) fail(Fault::overflow, "cannot convert float infinity to integer");
  if (std::fabs(d) >= 9.2e18) fail(Fault::unsupported, "an integer beyond 64 bits");
  return Value::of(static_cast<int64_t>(d));
}

Value to_integer(Interpreter&, const Value& self, const Bound& args) {
  const Value otherwise = args.has(0) ? args.value(0) : Value::of(int64_t{0});
  if (self.is(Kind::undefined)) fail_undefined(self);
  if (self.is_integral()) return Value::of(self.integer);
  double real = self.is(Kind::real) ? self.real : 0;
  if (self.is(Kind::real)) return std::isnan(real) ? otherwise : real_as_integer(real);
  if (!self.is(Kind::string)) return otherwise;
  const int64_t base = args.integer(1, 10);
  int64_t value = 0;
  const bool valid_base = base == 0 || (base >= 2 && base <= 36);
  if (valid_base && parse_integer(text_of(self), base, value)) return Value::of(value);
  if (!parse_real(text_of(self), real) || !std::isfinite(real)) return otherwise;
  return real_as_integer(real);
}

Value to_real(Interpreter&, const Value& self, const Bound& args) {
  if (self.is(Kind::undefined)) fail_undefined(self);
  if (self.is_number()) return Value::of(self.as_real());
  double value = 0;
  if (self.is(Kind::string) && parse_real(text_of(self), value)) return Value::of(value);
  return args.has(0) ? args.value(0) : Value::of(0.0);
}

Value absolute(Interpreter&, const Value& self, const Bound&) {
  if (self.is(Kind::real)) return Value::of(std::fabs(self.real));
  if (self.is_integral()) return self.integer < 0 ? negated(self) : Value::of(self.integer);
  if (self.is(Kind::undefined)) fail(Fault::type, "bad operand type for abs(): 'Undefined'");
  fail(Fault::type, "bad operand type for abs(): '{}'", type_name(self));
}

Value round(Interpreter&, const Value& self, const Bound& args) {
  const int64_t precision = args.integer(0, 0);
  const std::string method = args.has(1) ? to_text(args.value(1)) : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    fail(Fault::value, "method must be common, ceil or floor");
  if (self.is(Kind::undefined)) fail_undefined(self);
  if (!self.is_number()) fail(Fault::type, "type {} doesn't define __round__ method", type_name(self));
  if (precision < 0 || precision > 300) fail(Fault::unsupported, "rounding to {} digits", precision);
  if (method == "common") {
    if (self.is_integral()) return Value::of(self.integer);
    if (!std::isfinite(self.real)) return self;
    // The decimal digits of the exact binary value, rounded once.
    const std::string text = fmt::format("{:.{}f}", self.real, precision);
    double value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return Value::of(value);
  }
  const double scale = std::pow(10.0, static_cast<double>(precision)), scaled = self.as_real() * scale;
  if (!std::isfinite(scaled)) fail(Fault::overflow, "cannot convert float infinity or NaN to integer");
  return Value::of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

// As transformers defines it: json.dumps without HTML escapes.
Value tojson(Interpreter& in, const Value& self, const Bound& args) {
  JsonStyle style;
  style.ascii = args.boolean(0);
  style.sort = args.boolean(3);
  if (args.some(1)) {
    style.pretty = true;
    style.item_end.assign(1, ',');
    const Value by = args.value(1);
    if (by.is(Kind::string)) {
      style.indent = text_of(by);
    } else {
      const auto width = static_cast<size_t>(std::clamp<int64_t>(args.integer(1), 0, INT32_MAX));
      in.heap.check_string(width);
      style.indent.assign(width, ' ');
    }
  }
  if (args.some(2)) {
    const std::vector<Value> separators = to_vector(in.heap, args.value(2));
    if (separators.size() != 2 || !separators[0].is(Kind::string) || !separators[1].is(Kind::string))
      fail(Fault::value, "tojson() needs two strings as separators");
    style.item_end = text_of(separators[0]);
    style.key_end = text_of(separators[1]);
  }
  return in.heap.string(to_json(self, style));
}

Value unsupported(Interpreter&, const Value&, const Bound& args) {
  fail(Fault::unsupported, "the filter '{}' isn't supported", args.function());
}

constexpr NativeEntry entries[] = {
    {"abs", "/", absolute},
    {"capitalize", "", by_method},
    {"center", "width", center},
    {"e", "/", escape_filter},
    {"escape", "/", escape_filter},
    {"float", "default", to_real},
    {"forceescape", "", forceescape},
    {"format", "*", format},
    {"indent", "width first blank", indent},
    {"int", "default base", to_integer},
    {"lower", "", by_method},
    {"replace", "old! new! count", replace},
    {"round", "precision method", round},
    {"safe", "", safe},
    {"string", "/", string},
    {"title", "", title},
    {"tojson", "ensure_ascii indent separators sort_keys", tojson},
    {"trim", "chars", trim},
    {"truncate", "length killwords end leeway", truncate},
    {"upper", "", by_method},
    {"urlencode", "", urlencode},
    {"wordcount", "", wordcount},
    {"filesizeformat", "*", unsupported},
    {"pprint", "*", unsupported},
    {"random", "*", unsupported},
    {"striptags", "*", unsupported},
    {"urlize", "*", unsupported},
    {"wordwrap", "*", unsupported},
    {"xmlattr", "*", unsupported},
};

}  // namespace

std::span<const NativeEntry> text_filters() { return entries; }

}  // namespace consonant::jinja
