// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/print.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/utf8.hpp"
#include "text/jinja/frame.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

// Writes into one string that may not grow past the heap's limit.
class Printer {
 public:
  explicit Printer(size_t limit) : limit_(limit) {}
  void put(std::string_view text) {
    if (out.size() + text.size() > limit_) fail(Fault::limit, "a string longer than {} bytes", limit_);
    out.append(text);
  }
  void repr(const Value& v);
  std::string out;

 private:
  void items(const std::vector<Value>& items);
  void pairs(const Dict& dict);
  void view(const View& view);
  const size_t limit_;
};

void Printer::items(const std::vector<Value>& items) {
  const char* separator = "";
  for (const Value& item : items) {
    put(std::exchange(separator, ", "));
    repr(item);
  }
}

void Printer::pairs(const Dict& dict) {
  put("{");
  const char* separator = "";
  for (const auto& [key, value] : dict.items) {
    put(std::exchange(separator, ", "));
    repr(key);
    put(": ");
    repr(value);
  }
  put("}");
}

void Printer::view(const View& view) {
  put(view.of == View::Of::keys ? "dict_keys([" : view.of == View::Of::values ? "dict_values([" : "dict_items([");
  const char* separator = "";
  for (const auto& [key, value] : view.dict->items) {
    put(std::exchange(separator, ", "));
    if (view.of == View::Of::items) {
      put("(");
      repr(key);
      put(", ");
      repr(value);
      put(")");
    } else {
      repr(view.of == View::Of::keys ? key : value);
    }
  }
  put("])");
}

void Printer::repr(const Value& v) {
  switch (v.kind) {
    case Kind::undefined:
      return put("Undefined");
    case Kind::none:
      return put("None");
    case Kind::boolean:
      return put(v.integer ? "True" : "False");
    case Kind::integer:
      return put(fmt::format("{}", v.integer));
    case Kind::real:
      return put(repr_real(v.real));
    case Kind::string:
      return v.as<String>().markup ? put("Markup(" + repr_string(text_of(v)) + ")") : put(repr_string(text_of(v)));
    case Kind::list:
      put("[");
      items(v.as<List>().items);
      return put("]");
    case Kind::tuple:
      put("(");
      items(v.as<List>().items);
      return put(v.as<List>().items.size() == 1 ? ",)" : ")");
    case Kind::dict:
      return pairs(v.as<Dict>());
    case Kind::view:
      return view(v.as<View>());
    case Kind::range: {
      const auto& r = v.as<Range>();
      return put(r.step == 1 ? fmt::format("range({}, {})", r.start, r.stop)
                             : fmt::format("range({}, {}, {})", r.start, r.stop, r.step));
    }
    case Kind::macro: {
      const auto& node = v.as<Macro>().node;
      return put(node.name.empty() ? "<Macro anonymous>" : "<Macro " + repr_string(node.name) + ">");
    }
    case Kind::loop: {
      auto& loop = v.as<Loop>();
      return put(fmt::format("<LoopContext {}/{}>", loop.index0 + 1, loop.size()));
    }
    case Kind::space:
      fail(Fault::unsupported, "printing a namespace");
    default:
      fail(Fault::unsupported, "printing a {}: Python would print its address", type_name(v));
  }
}

}  // namespace

std::string repr(const Value& v) {
  Printer printer(v.object ? v.object->heap->limits.output : Limits().output);
  printer.repr(v);
  return std::move(printer.out);
}

std::string to_text(const Value& v) {
  if (v.is(Kind::string)) return text_of(v);
  if (v.is(Kind::undefined)) return "";
  return repr(v);
}

Value soft_text(Heap& heap, const Value& v) { return v.is(Kind::string) ? v : heap.string(to_text(v)); }

// The shortest digits that read back as the same double, as 1e+16 and more, or less than 1e-4, with an exponent.
std::string repr_real(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  const std::string text(buffer, end);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  if (exponent < -4 || exponent >= 16) return text;
  std::string digits;
  for (const char c : text.substr(0, e))
    if (c >= '0' && c <= '9') digits.push_back(c);
  std::string out = std::signbit(d) ? "-" : "";
  if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() < whole) digits.append(whole - digits.size(), '0');
  return out + digits.substr(0, whole) + "." + (digits.size() > whole ? digits.substr(whole) : "0");
}

std::string repr_string(std::string_view text) {
  const bool twice = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char32_t quote = twice ? '"' : '\'';
  std::string out(1, static_cast<char>(quote));
  for (size_t at = 0; at < text.size();) {
    const char32_t c = utf8_next(text, at);
    if (c == quote || c == '\\') {
      out.push_back('\\');
      out.push_back(static_cast<char>(c));
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c >= ' ' && c < 0x7F) {
      out.push_back(static_cast<char>(c));
    } else if (c > 0x7F && is_printable(c)) {
      append_utf8(out, c);
    } else if (c <= 0xFF) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c <= 0xFFFF) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  out.push_back(static_cast<char>(quote));
  return out;
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out.push_back(c);
    }
  }
  return out;
}

Value escape(Heap& heap, const Value& v) {
  if (v.is(Kind::string) && v.as<String>().markup) return v;
  return heap.string(escape_html(to_text(v)), true);
}

namespace {

class JsonPrinter {
 public:
  JsonPrinter(const JsonStyle& style, size_t limit) : style_(style), limit_(limit) {}
  void value(const Value& v, int level);
  std::string out;

 private:
  void put(std::string_view text) {
    if (out.size() + text.size() > limit_) fail(Fault::limit, "a string longer than {} bytes", limit_);
    out.append(text);
  }
  void line(int level) {
    if (!style_.pretty) return;
    put("\n");
    for (int i = 0; i < level; ++i) put(style_.indent);
  }
  void string(std::string_view text);
  void list(const List& list, int level);
  void dict(const Dict& dict, int level);
  std::string key(const Value& v) const;
  std::string number(const Value& v) const;

  const JsonStyle& style_;
  const size_t limit_;
};

void JsonPrinter::string(std::string_view text) {
  std::string s = "\"";
  for (size_t at = 0; at < text.size();) {
    const char32_t c = utf8_next(text, at);
    switch (c) {
      case '"':
        s += "\\\"";
        break;
      case '\\':
        s += "\\\\";
        break;
      case '\n':
        s += "\\n";
        break;
      case '\r':
        s += "\\r";
        break;
      case '\t':
        s += "\\t";
        break;
      case '\f':
        s += "\\f";
        break;
      case '\b':
        s += "\\b";
        break;
      default:
        if (c < 0x20 || (style_.ascii && c > 0x7E && c < 0x10000)) {
          s += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
        } else if (style_.ascii && c >= 0x10000) {
          const auto v = static_cast<uint32_t>(c) - 0x10000;
          s += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 | v >> 10, 0xDC00 | (v & 0x3FF));
        } else {
          append_utf8(s, c);
        }
    }
  }
  put(s + "\"");
}

std::string JsonPrinter::number(const Value& v) const {
  switch (v.kind) {
    case Kind::none:
      return "null";
    case Kind::boolean:
      return v.integer ? "true" : "false";
    case Kind::integer:
      return fmt::format("{}", v.integer);
    default:
      if (std::isnan(v.real)) return "NaN";
      if (std::isinf(v.real)) return v.real < 0 ? "-Infinity" : "Infinity";
      return repr_real(v.real);
  }
}

std::string JsonPrinter::key(const Value& v) const {
  if (v.is(Kind::string)) return text_of(v);
  if (v.is(Kind::none) || v.is_number()) return number(v);
  fail(Fault::type, "keys must be str, int, float, bool or None, not {}", type_name(v));
}

void JsonPrinter::list(const List& list, int level) {
  if (list.items.empty()) return put("[]");
  put("[");
  for (size_t i = 0; i < list.items.size(); ++i) {
    if (i) put(style_.item_end);
    line(level + 1);
    value(list.items[i], level + 1);
  }
  line(level);
  put("]");
}

void JsonPrinter::dict(const Dict& dict, int level) {
  if (dict.items.empty()) return put("{}");
  std::vector<std::pair<Value, Value>> items = dict.items;
  if (style_.sort)
    std::stable_sort(items.begin(), items.end(), [](const auto& a, const auto& b) { return less(a.first, b.first); });
  put("{");
  for (size_t i = 0; i < items.size(); ++i) {
    if (i) put(style_.item_end);
    line(level + 1);
    string(key(items[i].first));
    put(style_.key_end);
    value(items[i].second, level + 1);
  }
  line(level);
  put("}");
}

void JsonPrinter::value(const Value& v, int level) {
  switch (v.kind) {
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      return put(number(v));
    case Kind::string:
      return string(text_of(v));
    case Kind::list:
    case Kind::tuple:
      return list(v.as<List>(), level);
    case Kind::dict:
      return dict(v.as<Dict>(), level);
    default:
      fail(Fault::type, "Object of type {} is not JSON serializable", type_name(v));
  }
}

}  // namespace

std::string to_json(const Value& v, const JsonStyle& style) {
  JsonPrinter printer(style, v.object ? v.object->heap->limits.output : Limits().output);
  printer.value(v, 0);
  return std::move(printer.out);
}

}  // namespace consonant::jinja
