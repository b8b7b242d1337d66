// SPDX-License-Identifier: Apache-2.0
#include "formats/meta.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/utf8.hpp"

namespace consonant {

namespace {

constexpr std::array<std::string_view, 13> type_names = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                         "bool", "string", "array", "u64", "i64", "f64"};

struct Size {
  template <class T>
  size_t operator()(const std::vector<T>& values) const {
    return values.size();
  }
  size_t operator()(const MetaNested& nested) const { return nested.values.size(); }
  template <class T>
  size_t operator()(const T&) const {
    return 1;
  }
};

template <class T>
const T& expect(const Meta& meta, std::string_view key, const MetaValue& value, std::string_view wanted) {
  const T* held = std::get_if<T>(&value.value);
  if (!held) bad_input("{}: \"{}\" is {}, should be {}", meta.source, key, value.describe(), wanted);
  return *held;
}

double expect_number(const Meta& meta, std::string_view key, const MetaValue& value) {
  if (const auto* whole = std::get_if<int64_t>(&value.value)) return static_cast<double>(*whole);
  return expect<double>(meta, key, value, "a number");
}

template <class T>
T parse_number(std::string_view text, std::string_view whole) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    bad_usage("--override-kv {}: \"{}\" is no {}", whole, text, std::is_integral_v<T> ? "64-bit integer" : "number");
  return value;
}

}  // namespace

std::string_view name(MetaType type) { return type_names[static_cast<size_t>(type)]; }

std::string MetaValue::describe() const {
  if (!is_array) return std::string(name(type));
  return fmt::format("array of {} [{}]", name(type), std::visit(Size(), value));
}

void Meta::add(std::string key, MetaValue value) {
  if (key.empty()) bad_input("{}: an empty metadata key", source);
  const auto [at, added] = index_.emplace(key, entries_.size());
  if (!added) bad_input("{}: metadata key \"{}\" stands twice", source, key);
  entries_.emplace_back(std::move(key), std::move(value));
}

void Meta::replace(std::string key, MetaValue value) {
  const auto at = index_.find(key);
  if (at == index_.end()) return add(std::move(key), std::move(value));
  entries_[at->second].second = std::move(value);
}

namespace {

enum class Kind : uint8_t { number, boolean, string, array };

Kind kind_of(const MetaValue& value) {
  if (value.is_array) return Kind::array;
  if (value.type == MetaType::boolean) return Kind::boolean;
  return value.type == MetaType::string ? Kind::string : Kind::number;
}

bool is_whole(const MetaValue& value) { return std::holds_alternative<int64_t>(value.value); }

}  // namespace

void Meta::override_value(std::string key, MetaValue value) {
  if (const auto at = index_.find(key); at != index_.end()) {
    const MetaValue* old = &entries_[at->second].second;
    // A whole number may stand for any; a fraction is none of the counts.
    if (kind_of(*old) != kind_of(value) || (is_whole(*old) && !is_whole(value)))
      bad_input("{}: \"{}\" is {}, which --override-kv can't make {}", source, key, old->describe(), value.describe());
  } else {
    added_.emplace_back(key, false);
  }
  replace(std::move(key), std::move(value));
}

void Meta::check_overrides() {
  for (const auto& [key, asked] : std::exchange(added_, {}))
    if (!asked)
      bad_input("{}: --override-kv {}: neither the file nor the model that it holds knows this key", source, key);
}

const MetaValue* Meta::find(std::string_view key) const {
  for (auto& [added, asked] : added_) asked = asked || added == key;
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries_[at->second].second;
}

const MetaValue& Meta::get(std::string_view key) const {
  const MetaValue* value = find(key);
  if (!value) bad_input("{}: metadata \"{}\" is missing", source, key);
  return *value;
}

int64_t Meta::integer(std::string_view key) const { return expect<int64_t>(*this, key, get(key), "an integer"); }
double Meta::number(std::string_view key) const { return expect_number(*this, key, get(key)); }
bool Meta::boolean(std::string_view key) const { return expect<bool>(*this, key, get(key), "a bool"); }
std::string_view Meta::string(std::string_view key) const {
  return expect<std::string_view>(*this, key, get(key), "a string");
}
const MetaStrings& Meta::strings(std::string_view key) const {
  return expect<MetaStrings>(*this, key, get(key), "an array of strings");
}
const MetaInts& Meta::integers(std::string_view key) const {
  return expect<MetaInts>(*this, key, get(key), "an array of integers");
}
const MetaFloats& Meta::numbers(std::string_view key) const {
  return expect<MetaFloats>(*this, key, get(key), "an array of floats");
}

int64_t Meta::integer(std::string_view key, int64_t fallback) const { return has(key) ? integer(key) : fallback; }
double Meta::number(std::string_view key, double fallback) const { return has(key) ? number(key) : fallback; }
bool Meta::boolean(std::string_view key, bool fallback) const { return has(key) ? boolean(key) : fallback; }
std::string_view Meta::string(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : fallback;
}

std::string_view Meta::keep(std::string text) {
  kept_.push_back(std::make_unique<std::string>(std::move(text)));
  return *kept_.back();
}

void apply_override(Meta& meta, std::string_view text) {
  const size_t equals = text.find('='), colon = text.find(':', equals == text.npos ? 0 : equals);
  if (equals == text.npos || equals == 0 || colon == text.npos)
    bad_usage("--override-kv {}: should be KEY=TYPE:VALUE, with TYPE int, float, bool or str", sanitize_utf8(text));
  if (!is_utf8(text)) bad_usage("--override-kv {}: is not UTF-8", sanitize_utf8(text));
  std::string key(text.substr(0, equals));
  const std::string_view type = text.substr(equals + 1, colon - equals - 1), value = text.substr(colon + 1);
  if (type == "int") {
    meta.override_value(std::move(key), {MetaType::i64, false, parse_number<int64_t>(value, text)});
  } else if (type == "float") {
    const double number = parse_number<double>(value, text);
    if (!std::isfinite(number)) bad_usage("--override-kv {}: \"{}\" is no finite number", text, value);
    meta.override_value(std::move(key), {MetaType::f64, false, number});
  } else if (type == "bool") {
    if (value != "true" && value != "false")
      bad_usage("--override-kv {}: \"{}\" is neither true nor false", text, value);
    meta.override_value(std::move(key), {MetaType::boolean, false, value == "true"});
  } else if (type == "str") {
    meta.override_value(std::move(key), {MetaType::string, false, meta.keep(std::string(value))});
  } else {
    bad_usage("--override-kv {}: type \"{}\", should be int, float, bool or str", text, type);
  }
}

}  // namespace consonant
