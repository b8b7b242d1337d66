// SPDX-License-Identifier: Apache-2.0
// Python's two ways to put values into a text: "%s" % value and "{}".format(value).
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/number_text.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

int64_t read_number(std::string_view text, size_t& at) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (result.ec == std::errc::result_out_of_range || value > INT32_MAX)
    fail(Fault::value, "too many digits in a format string");
  at = static_cast<size_t>(result.ptr - text.data());
  return value;
}

bool is_digit_at(std::string_view text, size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '9'; }

std::string cut(const std::string& text, int precision) {
  return precision < 0 ? text : text.substr(0, byte_offset(std::string_view(text), precision));
}

int64_t real_to_integer(double d) {
  if (std::isnan(d)) fail(Fault::value, "cannot convert float NaN to integer");
  if (std::isinf(d)) fail(Fault::overflow, "cannot convert float infinity to integer");
  if (std::fabs(d) >= 9.2e18) fail(Fault::unsupported, "an integer beyond 64 bits");
  return static_cast<int64_t>(d);
}

// "%s" % values
class Printf {
 public:
  Printf(Heap& heap, const Value& format, const Value& values)
      : heap_(heap), text_(text_of(format)), markup_(format.as<String>().markup), values_(values) {}

  std::string run() {
    std::string out;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c != '%')
        out.push_back(c);
      else
        conversion(out);
      heap_.check_string(out.size());
    }
    // A mapping may hold more than is used; to Python all that has [] is one, but for tuples and strings.
    const bool mapping =
        values_.is(Kind::dict) || values_.is(Kind::list) || values_.is(Kind::undefined) || values_.is(Kind::range);
    const size_t given = values_.is(Kind::tuple) ? values_.as<List>().items.size() : 1;
    if (!mapping && used_ < given) fail(Fault::type, "not all arguments converted during string formatting");
    return out;
  }

 private:
  const Value& next() {
    if (named_.object || !named_.is(Kind::missing)) return named_;
    const size_t i = used_++;
    if (!values_.is(Kind::tuple)) {
      if (i > 0) fail(Fault::type, "not enough arguments for format string");
      return values_;
    }
    const auto& items = values_.as<List>().items;
    if (i >= items.size()) fail(Fault::type, "not enough arguments for format string");
    return items[i];
  }

  int64_t number_or_star() {
    if (at_ < text_.size() && text_[at_] == '*') {
      ++at_;
      const Value& v = next();
      if (!v.is_integral() || std::abs(v.integer) > INT32_MAX) fail(Fault::type, "* wants int");
      return v.integer;
    }
    return is_digit_at(text_, at_) ? read_number(text_, at_) : 0;
  }

  void mapping_key() {
    const size_t begin = at_ + 1;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
      if (depth == 0) break;
    }
    if (at_ == text_.size()) fail(Fault::value, "incomplete format key");
    if (!values_.is(Kind::dict)) fail(Fault::type, "format requires a mapping");
    const std::string key = text_.substr(begin, at_++ - begin);
    const Value* found = values_.as<Dict>().find(key);
    if (!found) fail(Fault::lookup, "the format's key '{}' is not in the mapping", key);
    named_ = *found;
  }

  void conversion(std::string& out) {
    FormatSpec spec;
    named_ = Value();
    if (at_ < text_.size() && text_[at_] == '(') mapping_key();
    bool zero = false, left = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '-')
        left = true;
      else if (c == '+')
        spec.sign = '+';
      else if (c == ' ')
        spec.sign = spec.sign == '+' ? '+' : ' ';
      else if (c == '#')
        spec.alternate = true;
      else if (c == '0')
        zero = true;
      else
        break;
    }
    spec.width = number_or_star();
    if (spec.width < 0) {
      left = true;
      spec.width = -spec.width;
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      spec.precision = static_cast<int>(std::max<int64_t>(number_or_star(), 0));
    }
    while (at_ < text_.size() && std::string_view("hlL").find(text_[at_]) != std::string_view::npos) ++at_;
    if (at_ == text_.size()) fail(Fault::value, "incomplete format");
    spec.type = text_[at_++];
    spec.align = left ? '<' : '>';
    if (spec.type == '%') {
      out.push_back('%');
      return;
    }
    const NumberText text = converted(spec, next());
    const bool number = std::string_view("srac").find(spec.type) == std::string_view::npos;
    if (number && zero && !left) {
      spec.align = '=';
      spec.fill = '0';
    }
    out += filled(text, spec, '>', heap_.limits.output);
  }

  std::string escaped(const Value& v, std::string text) const {
    return markup_ && !(v.is(Kind::string) && v.as<String>().markup) ? escape_html(text) : text;
  }

  NumberText converted(FormatSpec& spec, const Value& v) {
    switch (spec.type) {
      case 's':
        return {"", cut(escaped(v, to_text(v)), spec.precision)};
      case 'r':
        return {"", cut(markup_ ? escape_html(repr(v)) : repr(v), spec.precision)};
      case 'c': {
        if (v.is(Kind::string) && length_of(v) == 1) return {"", text_of(v)};
        if (!v.is_integral()) fail(Fault::type, "%c requires int or char");
        if (v.integer < 0 || v.integer > 0x10FFFF || (v.integer >= 0xD800 && v.integer < 0xE000))
          fail(Fault::overflow, "%c arg not in range(0x110000)");
        std::string c;
        append_utf8(c, static_cast<char32_t>(v.integer));
        return {"", c};
      }
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o': {
        const bool decimal = std::string_view("diu").find(spec.type) != std::string_view::npos;
        if (v.is(Kind::undefined) && decimal) fail_undefined(v);
        if (!(decimal ? v.is_number() : v.is_integral()))
          fail(Fault::type, "%{} format: {} is required, not {}", spec.type, decimal ? "a real number" : "an integer",
               type_name(v));
        NumberText text = integer_text(v.is(Kind::real) ? real_to_integer(v.real) : v.integer, spec);
        const auto digits = static_cast<int>(text.digits.size());
        if (spec.precision > 1000) fail(Fault::unsupported, "a precision of {} digits", spec.precision);
        if (spec.precision > digits) text.digits.insert(0, static_cast<size_t>(spec.precision - digits), '0');
        return text;
      }
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (v.is(Kind::undefined)) fail_undefined(v);
        if (!v.is_number()) fail(Fault::type, "must be real number, not {}", type_name(v));
        return real_text(v.as_real(), spec);
      case 'a':
        fail(Fault::unsupported, "the format %a isn't supported");
      default:
        fail(Fault::value, "unsupported format character '{}'", spec.type);
    }
  }

  Heap& heap_;
  const std::string& text_;
  const bool markup_;
  const Value& values_;
  Value named_;
  size_t at_ = 0, used_ = 0;
};

// [[fill]align][sign][#][0][width][group][.precision][type]
FormatSpec parse_spec(std::string_view text) {
  FormatSpec spec;
  size_t at = 0;
  const auto is_align = [&](size_t i) {
    return i < text.size() && std::string_view("<>=^").find(text[i]) != std::string_view::npos;
  };
  if (!text.empty()) {
    size_t next = 0;
    const char32_t first = utf8_next(text, next);
    if (is_align(next)) {
      spec.fill = first;
      spec.align = text[next];
      at = next + 1;
    } else if (is_align(0)) {
      spec.align = text[0];
      at = 1;
    }
  }
  const auto skip = [&](char c) { return at < text.size() && text[at] == c ? (++at, true) : false; };
  if (at < text.size() && std::string_view("+- ").find(text[at]) != std::string_view::npos) spec.sign = text[at++];
  if (skip('z')) fail(Fault::unsupported, "'z' in a format specifier");
  spec.alternate = skip('#');
  if (skip('0')) {
    if (!spec.align) spec.align = '=';
    if (spec.fill == ' ') spec.fill = '0';
  }
  if (is_digit_at(text, at)) spec.width = read_number(text, at);
  if (skip(',')) spec.group = ',';
  if (skip('_')) {
    if (spec.group) fail(Fault::value, "Cannot specify both ',' and '_'.");
    spec.group = '_';
  }
  if (skip('.')) {
    if (!is_digit_at(text, at)) fail(Fault::value, "Format specifier missing precision");
    spec.precision = static_cast<int>(read_number(text, at));
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) fail(Fault::value, "Invalid format specifier '{}'", text);
  return spec;
}

[[noreturn]] void unknown_code(const FormatSpec& spec, const Value& v) {
  fail(Fault::value, "Unknown format code '{}' for object of type '{}'", spec.type, type_name(v));
}

std::string format_string(const Value& v, const FormatSpec& spec, size_t limit) {
  if (spec.type && spec.type != 's') unknown_code(spec, v);
  if (spec.sign != '-') fail(Fault::value, "Sign not allowed in string format specifier");
  if (spec.alternate) fail(Fault::value, "Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=' && spec.fill != '0') fail(Fault::value, "'=' alignment not allowed in string format specifier");
  if (spec.group) fail(Fault::value, "Cannot specify '{}' with 's'.", spec.group);
  FormatSpec plain = spec;
  if (spec.align == '=') plain.align = '<';
  return filled({"", cut(text_of(v), spec.precision)}, plain, '<', limit);
}

std::string format_number(const Value& v, const FormatSpec& spec, size_t limit) {
  const std::string_view real_types = "eEfFgGn%";
  const bool real_type = real_types.find(spec.type) != std::string_view::npos && spec.type != 'n' && spec.type;
  if (v.is(Kind::real) || real_type) {
    if (spec.type && real_types.find(spec.type) == std::string_view::npos) unknown_code(spec, v);
    return filled(real_text(v.as_real(), spec), spec, '>', limit);
  }
  if (spec.type && std::string_view("bcdoxXn").find(spec.type) == std::string_view::npos) unknown_code(spec, v);
  if (spec.precision >= 0) fail(Fault::value, "Precision not allowed in integer format specifier");
  if (spec.type != 'c') return filled(integer_text(v.integer, spec), spec, '>', limit);
  if (v.integer < 0 || v.integer > 0x10FFFF || (v.integer >= 0xD800 && v.integer < 0xE000))
    fail(Fault::overflow, "%c arg not in range(0x110000)");
  std::string c;
  append_utf8(c, static_cast<char32_t>(v.integer));
  return filled({"", c}, spec, '<', limit);
}

// "{}".format(...)
class Braces {
 public:
  Braces(Interpreter& in, bool markup, const Args& args) : in_(in), markup_(markup), args_(args) {}

  std::string run(std::string_view text, int depth) {
    if (depth < 0) fail(Fault::value, "Max string recursion exceeded");
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const char c = text[at++];
      const bool twice = at < text.size() && text[at] == c;
      if (c == '{' && !twice) {
        out += field(text, at, depth);
      } else {
        if (c == '{' || c == '}') {
          if (!twice) fail(Fault::value, "Single '}}' encountered in format string");
          ++at;
        }
        out.push_back(c);
      }
      in_.heap.check_string(out.size());
    }
    return out;
  }

 private:
  // name[!conversion][:spec]}; `at` stands after the brace, and afterwards after its end.
  std::string field(std::string_view text, size_t& at, int depth) {
    size_t end = at;
    int open = 1;
    size_t mark = std::string_view::npos;  // the first ! or : outside of brackets
    bool in_brackets = false;
    for (; end < text.size(); ++end) {
      const char c = text[end];
      if (c == '[' && mark == std::string_view::npos) in_brackets = true;
      if (c == ']') in_brackets = false;
      if (c == '{') ++open;
      if (c == '}' && --open == 0) break;
      if ((c == '!' || c == ':') && mark == std::string_view::npos && !in_brackets) mark = end;
    }
    if (open) fail(Fault::value, "expected '}}' before end of string");
    const std::string_view whole = text.substr(at, end - at);
    const size_t cut_at = mark == std::string_view::npos ? whole.size() : mark - at;
    at = end + 1;
    std::string_view rest = whole.substr(cut_at);
    Value v = lookup(whole.substr(0, cut_at));
    if (!rest.empty() && rest[0] == '!') {
      if (rest.size() < 2 || (rest.size() > 2 && rest[2] != ':'))
        fail(Fault::value, "expected ':' after conversion specifier");
      if (rest[1] == 's')
        v = in_.heap.string(to_text(v));
      else if (rest[1] == 'r')
        v = in_.heap.string(repr(v));
      else
        fail(rest[1] == 'a' ? Fault::unsupported : Fault::value, "unknown conversion specifier '{}'", rest[1]);
      rest.remove_prefix(2);
    }
    const std::string spec = rest.empty() ? "" : run(rest.substr(1), depth - 1);
    if (!markup_) return format_value(v, spec);
    if (v.is(Kind::string) && v.as<String>().markup) {
      if (!spec.empty()) fail(Fault::value, "format specifier {} given to markup", spec);
      return text_of(v);
    }
    return escape_html(format_value(v, spec));
  }

  static bool all_digits(std::string_view s) {
    return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
  }

  Value argument(std::string_view name) {
    if (name.empty() || all_digits(name)) {
      if (name.empty() ? numbered_ == 1 : numbered_ == 2)
        fail(Fault::value, "cannot switch between manual field specification and automatic field numbering");
      numbered_ = name.empty() ? 2 : 1;
      size_t at = 0;
      const size_t i = name.empty() ? next_++ : static_cast<size_t>(read_number(name, at));
      if (i >= args_.positional.size())
        fail(Fault::lookup, "Replacement index {} out of range for positional args tuple", i);
      return args_.positional[i];
    }
    for (const auto& [key, value] : args_.named)
      if (key == name) return value;
    fail(Fault::lookup, "format() has no argument '{}'", name);
  }

  Value lookup(std::string_view name) {
    const size_t first = std::min(name.find_first_of(".["), name.size());
    if (name.substr(0, first).find('{') != std::string_view::npos) fail(Fault::value, "unexpected '{{' in field name");
    Value v = argument(name.substr(0, first));
    for (size_t at = first; at < name.size();) {
      if (name[at] == '.') {
        const size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) fail(Fault::value, "Empty attribute in format string");
        v = in_.getattr(v, name.substr(at + 1, end - at - 1));
        at = end;
      } else if (name[at] == '[') {
        const size_t end = name.find(']', at);
        if (end == std::string_view::npos) fail(Fault::value, "Missing ']' in format string");
        const std::string_view key = name.substr(at + 1, end - at - 1);
        if (key.empty()) fail(Fault::value, "Empty attribute in format string");
        size_t zero = 0;
        v = in_.getitem(v, all_digits(key) ? Value::of(read_number(key, zero)) : in_.heap.string(std::string(key)));
        at = end + 1;
      } else {
        fail(Fault::value, "Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return v;
  }

  Interpreter& in_;
  const bool markup_;
  const Args& args_;
  size_t next_ = 0;
  int numbered_ = 0;  // 1: by the template, 2: from left to right
};

}  // namespace

std::string format_value(const Value& value, std::string_view spec_text) {
  if (spec_text.empty()) return to_text(value);
  const size_t limit = value.object ? value.object->heap->limits.output : Limits().output;
  if (value.is(Kind::string)) return format_string(value, parse_spec(spec_text), limit);
  if (!value.is_number()) fail(Fault::type, "unsupported format string passed to {}.__format__", type_name(value));
  return format_number(value, parse_spec(spec_text), limit);
}

Value format_printf(Interpreter& in, const Value& format, const Value& values) {
  in.heap.spend_bytes(text_of(format).size());
  return in.heap.string(Printf(in.heap, format, values).run(), format.as<String>().markup);
}

Value format_braces(Interpreter& in, const Value& format, const Args& args) {
  in.heap.spend_bytes(text_of(format).size());
  const bool markup = format.as<String>().markup;
  return in.heap.string(Braces(in, markup, args).run(text_of(format), 2), markup);
}

}  // namespace consonant::jinja
