// SPDX-License-Identifier: Apache-2.0
// The methods of Python's str. Where the string is markup (`safe`, `escape`), so is the result, and text that is put
// into it is escaped.
#include <algorithm>

#include "base/utf8.hpp"
#include "text/jinja/interpreter.hpp"
#include "text/jinja/print.hpp"
#include "text/jinja/unicode.hpp"

namespace consonant::jinja {

namespace {

bool is_markup(const Value& v) { return v.is(Kind::string) && v.as<String>().markup; }
Value same(Interpreter& in, const Value& self, std::string text) {
  return in.heap.string(std::move(text), is_markup(self));
}
std::string escaped_for(const Value& self, const Value& part) {
  return is_markup(self) && !is_markup(part) ? escape_html(text_of(part)) : text_of(part);
}

template <std::string (*map)(std::string_view)>
Value mapped(Interpreter& in, const Value& self, const Bound&) {
  in.heap.spend_bytes(text_of(self).size() * 8);
  return same(in, self, map(text_of(self)));
}

template <Side side>
Value stripped(Interpreter& in, const Value& self, const Bound& args) {
  const std::string* chars = args.some(0) ? &args.text(0) : nullptr;
  return same(in, self, std::string(strip(text_of(self), side, chars)));
}

Value list_of(Interpreter& in, const Value& self, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const auto part : parts) items.push_back(same(in, self, std::string(part)));
  return in.heap.list(std::move(items));
}

Value split(Interpreter& in, const Value& self, const Bound& args) {
  const std::string_view text = text_of(self);
  const int64_t most = args.integer(1, -1);
  in.heap.spend_bytes(text.size());
  if (!args.some(0)) return list_of(in, self, split_space(text, most));
  const std::string& separator = args.text(0);
  if (separator.empty()) fail(Fault::value, "empty separator");
  std::vector<std::string_view> parts;
  size_t from = 0;
  for (size_t at = text.find(separator); at != std::string_view::npos; at = text.find(separator, from)) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) >= most) break;
    parts.push_back(text.substr(from, at - from));
    from = at + separator.size();
  }
  parts.push_back(text.substr(from));
  return list_of(in, self, parts);
}

Value rsplit(Interpreter& in, const Value& self, const Bound& args) {
  std::string_view text = text_of(self);
  const int64_t most = args.integer(1, -1);
  in.heap.spend_bytes(text.size());
  if (!args.some(0)) return list_of(in, self, split_space_right(text, most));
  const std::string& separator = args.text(0);
  if (separator.empty()) fail(Fault::value, "empty separator");
  std::vector<std::string_view> parts;
  for (size_t at = text.rfind(separator); at != std::string_view::npos; at = text.rfind(separator)) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) >= most) break;
    parts.push_back(text.substr(at + separator.size()));
    text = text.substr(0, at);
  }
  parts.push_back(text);
  std::reverse(parts.begin(), parts.end());
  return list_of(in, self, parts);
}

Value splitlines(Interpreter& in, const Value& self, const Bound& args) {
  in.heap.spend_bytes(text_of(self).size());
  return list_of(in, self, split_lines(text_of(self), args.boolean(0)));
}

Value partition(Interpreter& in, const Value& self, const Bound& args) {
  const std::string& text = text_of(self);
  const std::string& separator = args.text(0);
  if (separator.empty()) fail(Fault::value, "empty separator");
  const bool right = args.function() == "rpartition";
  const size_t at = right ? text.rfind(separator) : text.find(separator);
  if (at == std::string::npos) {
    const Value none = same(in, self, "");
    return in.heap.tuple(right ? std::vector<Value>{none, none, self} : std::vector<Value>{self, none, none});
  }
  return in.heap.tuple({same(in, self, text.substr(0, at)), same(in, self, separator),
                        same(in, self, text.substr(at + separator.size()))});
}

// The part of the string from `start` to `end`, in code points; false if it starts behind the end.
struct Part {
  std::string_view text;
  int64_t first = 0;  // the code point it starts with
  bool valid = true;
};

Part part_of(const Value& self, const Bound& args, size_t start_at) {
  const auto& s = self.as<String>();
  const int64_t size = char_count(s);
  const auto index = [&](size_t i, int64_t otherwise) {
    if (!args.some(i)) return otherwise;
    const int64_t v = args.integer(i);
    return v < 0 ? std::max<int64_t>(v < -size ? 0 : v + size, 0) : v;
  };
  const int64_t start = index(start_at, 0), end = std::min(index(start_at + 1, size), size);
  if (start > size || start > end) return {"", start, false};
  const size_t from = byte_offset(s, start);
  return {std::string_view(s.text).substr(from, byte_offset(s, end) - from), start, true};
}

Value find(Interpreter& in, const Value& self, const Bound& args) {
  const Part part = part_of(self, args, 1);
  const bool right = args.function()[0] == 'r';
  const bool must = args.function() == "index" || args.function() == "rindex";
  const std::string& wanted = args.text(0);
  in.heap.spend_bytes(part.text.size());
  const size_t at = !part.valid ? std::string_view::npos : right ? part.text.rfind(wanted) : part.text.find(wanted);
  if (at == std::string_view::npos) {
    if (must) fail(Fault::value, "substring not found");
    return Value::of(int64_t{-1});
  }
  return Value::of(part.first + char_count(part.text.substr(0, at)));
}

Value count(Interpreter& in, const Value& self, const Bound& args) {
  const Part part = part_of(self, args, 1);
  const std::string& wanted = args.text(0);
  in.heap.spend_bytes(part.text.size());
  if (!part.valid) return Value::of(int64_t{0});
  if (wanted.empty()) return Value::of(char_count(part.text) + 1);
  int64_t n = 0;
  for (size_t at = part.text.find(wanted); at != std::string_view::npos;
       at = part.text.find(wanted, at + wanted.size()))
    ++n;
  return Value::of(n);
}

Value has_end(Interpreter&, const Value& self, const Bound& args) {
  const Part part = part_of(self, args, 1);
  const bool start = args.function() == "startswith";
  const auto matches = [&](const Value& v) {
    if (!v.is(Kind::string))
      fail(Fault::type, "{} first arg must be str or a tuple of str, not {}", args.function(), type_name(v));
    const std::string& wanted = text_of(v);
    if (!part.valid || wanted.size() > part.text.size()) return false;
    return part.text.substr(start ? 0 : part.text.size() - wanted.size(), wanted.size()) == wanted;
  };
  const Value wanted = args.value(0);
  if (!wanted.is(Kind::tuple)) return Value::of(matches(wanted));
  const auto& all = wanted.as<List>().items;
  return Value::of(std::any_of(all.begin(), all.end(), matches));
}

Value without_end(Interpreter& in, const Value& self, const Bound& args) {
  const std::string &text = text_of(self), &end = args.text(0);
  const bool prefix = args.function() == "removeprefix";
  if (end.size() > text.size() || text.compare(prefix ? 0 : text.size() - end.size(), end.size(), end) != 0)
    return self;
  return same(in, self, prefix ? text.substr(end.size()) : text.substr(0, text.size() - end.size()));
}

Value replace(Interpreter& in, const Value& self, const Bound& args) {
  args.text(1);
  return same(in, self,
              replaced(in.heap, text_of(self), args.text(0), escaped_for(self, args.value(1)), args.integer(2, -1)));
}

Value join(Interpreter& in, const Value& self, const Bound& args) {
  std::string out;
  bool first = true;
  const Ref<Iterator> it = iterate(in.heap, args.value(0));
  int64_t at = 0;
  for (Value item; it->next(item); ++at) {
    in.heap.spend(1);
    if (!item.is(Kind::string) && !is_markup(self))
      fail(Fault::type, "sequence item {}: expected str instance, {} found", at, type_name(item));
    if (!std::exchange(first, false)) out += text_of(self);
    out += is_markup(self) ? text_of(escape(in.heap, item)) : text_of(item);
    in.heap.check_string(out.size());
  }
  return same(in, self, std::move(out));
}

Value padded(Interpreter& in, const Value& self, const Bound& args) {
  const int64_t size = length_of(self), width = args.integer(0);
  const std::string fill = args.has(1) ? args.text(1) : " ";
  const std::string piece = is_markup(self) ? escape_html(fill) : fill;
  if (char_count(piece) != 1) fail(Fault::type, "The fill character must be exactly one character long");
  if (width <= size) return self;
  const int64_t missing = width - size;
  in.heap.check_string(text_of(self).size() +
                       static_cast<size_t>(std::min<int64_t>(missing, INT32_MAX)) * piece.size());
  // The odd one goes to the left in an odd width, as Python's center() has it.
  const int64_t left = args.function() == "rjust"   ? missing
                       : args.function() == "ljust" ? 0
                                                    : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += piece;
  out += text_of(self);
  for (int64_t i = left; i < missing; ++i) out += piece;
  return same(in, self, std::move(out));
}

Value zfill(Interpreter& in, const Value& self, const Bound& args) {
  const std::string& text = text_of(self);
  const int64_t missing = args.integer(0) - length_of(self);
  if (missing <= 0) return self;
  in.heap.check_string(text.size() + static_cast<size_t>(missing));
  const size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  return same(in, self, text.substr(0, sign) + std::string(static_cast<size_t>(missing), '0') + text.substr(sign));
}

Value expandtabs(Interpreter& in, const Value& self, const Bound& args) {
  const int64_t size = args.integer(0, 8);
  std::string out;
  int64_t column = 0;
  const std::string& text = text_of(self);
  for (size_t at = 0; at < text.size();) {
    const char32_t c = utf8_next(text, at);
    if (c == '\t') {
      if (size <= 0) continue;
      const int64_t n = size - column % size;
      in.heap.check_string(out.size() + static_cast<size_t>(n));
      out.append(static_cast<size_t>(n), ' ');
      column += n;
      continue;
    }
    append_utf8(out, c);
    column = c == '\n' || c == '\r' ? 0 : column + 1;
  }
  return same(in, self, std::move(out));
}

template <bool (*test)(char32_t)>
Value every(Interpreter&, const Value& self, const Bound&) {
  const std::u32string chars = decode(text_of(self));
  return Value::of(!chars.empty() && std::all_of(chars.begin(), chars.end(), test));
}

template <bool (*test)(std::string_view)>
Value whole(Interpreter&, const Value& self, const Bound&) {
  return Value::of(test(text_of(self)));
}

bool alnum(char32_t c) { return c != '_' && is_word(c); }

Value isascii(Interpreter&, const Value& self, const Bound&) {
  const std::string& text = text_of(self);
  return Value::of(std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }));
}

Value isprintable(Interpreter&, const Value& self, const Bound&) {
  const std::u32string chars = decode(text_of(self));
  return Value::of(std::all_of(chars.begin(), chars.end(), is_printable));
}

Value format(Interpreter& in, const Value& self, const Bound& args) { return format_braces(in, self, args.all); }

Value format_map(Interpreter& in, const Value& self, const Bound& args) {
  const Value map = args.value(0);
  if (!map.is(Kind::dict)) fail(Fault::type, "format_map() needs a mapping, not {}", type_name(map));
  Args named;
  for (const auto& [key, value] : map.as<Dict>().items)
    if (key.is(Kind::string)) named.named.emplace_back(text_of(key), value);
  return format_braces(in, self, named);
}

constexpr NativeEntry methods[] = {
    {"upper", "/", mapped<to_upper>},
    {"lower", "/", mapped<to_lower>},
    {"title", "/", mapped<to_title>},
    {"capitalize", "/", mapped<capitalize>},
    {"swapcase", "/", mapped<swap_case>},
    {"casefold", "/", mapped<fold_case>},
    {"strip", "/ chars", stripped<Side::both>},
    {"lstrip", "/ chars", stripped<Side::left>},
    {"rstrip", "/ chars", stripped<Side::right>},
    {"split", "sep maxsplit", split},
    {"rsplit", "sep maxsplit", rsplit},
    {"splitlines", "keepends", splitlines},
    {"partition", "/ sep!", partition},
    {"rpartition", "/ sep!", partition},
    {"find", "/ sub! start end", find},
    {"rfind", "/ sub! start end", find},
    {"index", "/ sub! start end", find},
    {"rindex", "/ sub! start end", find},
    {"count", "/ sub! start end", count},
    {"startswith", "/ prefix! start end", has_end},
    {"endswith", "/ suffix! start end", has_end},
    {"removeprefix", "/ prefix!", without_end},
    {"removesuffix", "/ suffix!", without_end},
    {"replace", "/ old! new! count", replace},
    {"join", "/ iterable!", join},
    {"center", "/ width! fillchar", padded},
    {"ljust", "/ width! fillchar", padded},
    {"rjust", "/ width! fillchar", padded},
    {"zfill", "/ width!", zfill},
    {"expandtabs", "tabsize", expandtabs},
    {"isalpha", "/", every<is_alpha>},
    {"isdecimal", "/", every<is_decimal>},
    {"isdigit", "/", every<is_digit>},
    {"isalnum", "/", every<alnum>},
    {"isspace", "/", every<is_space>},
    {"islower", "/", whole<is_lower>},
    {"isupper", "/", whole<is_upper>},
    {"istitle", "/", whole<is_title>},
    {"isidentifier", "/", whole<is_identifier>},
    {"isascii", "/", isascii},
    {"isprintable", "/", isprintable},
    {"format", "*", format},
    {"format_map", "/ mapping!", format_map},
};

}  // namespace

std::string replaced(Heap& heap, std::string_view text, std::string_view from, std::string_view to, int64_t most) {
  std::string out;
  heap.spend_bytes(text.size());
  int64_t done = 0;
  size_t at = 0;
  if (from.empty()) {  // between all characters, and at both ends
    for (;;) {
      if (most < 0 || done++ < most) out += to;
      if (at == text.size()) return out;
      const size_t before = at;
      utf8_next(text, at);
      out += text.substr(before, at - before);
      heap.check_string(out.size());
    }
  }
  for (;;) {
    const size_t next = most >= 0 && done >= most ? std::string_view::npos : text.find(from, at);
    if (next == std::string_view::npos) break;
    out += text.substr(at, next - at);
    out += to;
    heap.check_string(out.size());
    at = next + from.size();
    ++done;
  }
  out += text.substr(at);
  return out;
}

const NativeEntry* find_string_method(std::string_view name) {
  for (const NativeEntry& entry : methods)
    if (entry.name == name) return &entry;
  return nullptr;
}

}  // namespace consonant::jinja
