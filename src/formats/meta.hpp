// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace consonant {

// One metadata value as GGUF has it. Integers of every width are int64 (a uint64 past its range is refused when read);
// arrays hold one kind of element. Strings of a mapped file are views into it: a vocabulary of 262,144 tokens costs
// no copies.
struct MetaValue;
using MetaInts = std::vector<int64_t>;
using MetaFloats = std::vector<double>;
using MetaBools = std::vector<bool>;
using MetaStrings = std::vector<std::string_view>;
struct MetaNested {  // array of arrays: legal in the format, used by no reader here; kept for `inspect`
  std::vector<MetaValue> values;
};

enum class MetaType : uint8_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };
std::string_view name(MetaType type);

struct MetaValue {
  MetaType type;  // as stored; of the elements, for an array
  bool is_array = false;
  std::variant<int64_t, double, bool, std::string_view, MetaInts, MetaFloats, MetaBools, MetaStrings, MetaNested> value;

  std::string describe() const;  // "array of i32 [512]", "string"
};

// Metadata of a model under GGUF's names, in file order. Readers ask for the kind they need; another kind stored there
// is bad input that names the key and both kinds, never a reinterpretation.
class Meta {
 public:
  // Refuses empty and duplicate keys.
  void add(std::string key, MetaValue value);
  void replace(std::string key, MetaValue value);  // adds or replaces

  // `--override-kv`. Bad input if the key holds another kind of value. A key that isn't there is added, and remembered
  // until `check_overrides`, which is bad input for those that no reader has asked for since: nobody knows them.
  void override_value(std::string key, MetaValue value);
  void check_overrides();

  const MetaValue* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const std::vector<std::pair<std::string, MetaValue>>& entries() const { return entries_; }

  // Required values: bad input if absent.
  int64_t integer(std::string_view key) const;  // any integer type
  double number(std::string_view key) const;    // any integer or float type
  bool boolean(std::string_view key) const;
  std::string_view string(std::string_view key) const;
  const MetaStrings& strings(std::string_view key) const;
  const MetaInts& integers(std::string_view key) const;
  const MetaFloats& numbers(std::string_view key) const;

  // Optional ones: the fallback if absent, bad input if of another kind.
  int64_t integer(std::string_view key, int64_t fallback) const;
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string_view string(std::string_view key, std::string_view fallback) const;

  // Keeps `text` alive as long as the metadata and returns the view: for values that come from JSON.
  std::string_view keep(std::string text);

  std::string source;  // the file or folder it came from, for messages

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
  };

  const MetaValue& get(std::string_view key) const;

  std::vector<std::pair<std::string, MetaValue>> entries_;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> index_;  // key to entry
  std::vector<std::unique_ptr<std::string>> kept_;
  mutable std::vector<std::pair<std::string, bool>> added_;  // by overrides, and whether a reader asked
};

// KEY=TYPE:VALUE with TYPE int, float, bool or str, as `--override-kv` takes it: see Meta::override_value.
void apply_override(Meta& meta, std::string_view text);

}  // namespace consonant
