// SPDX-License-Identifier: Apache-2.0
#include "formats/inspect.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/utf8.hpp"
#include "formats/gguf_types.hpp"

namespace consonant {

namespace {

constexpr size_t whole_array = 64;    // elements up to which JSON gives arrays whole
constexpr size_t shown_elements = 6;  // in text
constexpr size_t shown_bytes = 120;   // of a string, in text

struct Sum {
  int64_t tensors = 0, elements = 0, bytes = 0;
};

std::map<std::string_view, Sum> sums_by_type(const ModelFile& model) {
  std::map<std::string_view, Sum> sums;
  for (const StoredTensor& t : model.tensors) {
    Sum& s = sums[name(t.type)];
    ++s.tensors;
    s.elements += element_count(t.sizes);
    s.bytes += t.bytes;
  }
  return sums;
}

Sum total(const std::map<std::string_view, Sum>& sums) {
  Sum all;
  for (const auto& [type, s] : sums) {
    all.tensors += s.tensors;
    all.elements += s.elements;
    all.bytes += s.bytes;
  }
  return all;
}

// 98362432 as "98.4 MB".
std::string human(int64_t n, std::string_view unit = {}) {
  constexpr std::string_view prefixes = " kMGTP";
  double x = static_cast<double>(n);
  size_t prefix = 0;
  for (; x >= 1000 && prefix + 1 < prefixes.size(); ++prefix) x /= 1000;
  if (prefix == 0) return unit.empty() ? std::to_string(n) : fmt::format("{} {}", n, unit);
  return fmt::format("{:.1f} {}{}", x, prefixes[prefix], unit);
}

// One line, whole characters, cut to what a terminal can show.
std::string one_line(std::string_view text) {
  std::string out;
  const std::string clean = sanitize_utf8(text);
  for (size_t at = 0; at < clean.size();) {
    if (out.size() >= shown_bytes) return fmt::format("{}... ({} bytes)", out, text.size());
    const char32_t c = utf8_next(clean, at);
    if (c == '\n')
      out += "\\n";
    else if (c == '\t')
      out += "\\t";
    else if (c == '\r')
      out += "\\r";
    else if (c < 0x20 || (c >= 0x7F && c < 0xA0))
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    else
      append_utf8(out, c);
  }
  return out;
}

// A float in as few digits as tell it apart: 1e-05, not 9.999999747378752e-06.
std::string number(MetaType type, double x) {
  return type == MetaType::f32 ? fmt::format("{}", static_cast<float>(x)) : fmt::format("{}", x);
}

// A view of the elements that both forms share: how many, and each as text.
template <class Text>
std::string list(size_t size, const Text& text) {
  std::string out = "[";
  for (size_t i = 0; i < std::min(size, shown_elements); ++i) {
    if (i > 0) out += ", ";
    out += text(i);
  }
  return out + (size > shown_elements ? ", ...]" : "]");
}

struct Shown {
  MetaType type;

  std::string operator()(int64_t x) const { return std::to_string(x); }
  std::string operator()(double x) const { return number(type, x); }
  std::string operator()(bool x) const { return x ? "true" : "false"; }
  std::string operator()(std::string_view x) const { return '"' + one_line(x) + '"'; }
  std::string operator()(const MetaNested& x) const {
    return list(x.values.size(), [&](size_t i) { return x.values[i].describe(); });
  }
  template <class T>
  std::string operator()(const std::vector<T>& x) const {
    return list(x.size(), [&](size_t i) { return (*this)(static_cast<T>(x[i])); });
  }
};

struct AsJson {
  MetaType type;

  Json operator()(int64_t x) const { return x; }
  // JSON has no infinities. The shortest form that names the float is the one to give.
  Json operator()(double x) const {
    if (!std::isfinite(x)) return number(type, x);
    return type == MetaType::f32 ? Json(std::stod(number(type, x))) : Json(x);
  }
  Json operator()(bool x) const { return x; }
  Json operator()(std::string_view x) const { return sanitize_utf8(x); }
  Json operator()(const MetaNested& x) const {
    Json out = Json::array();
    for (const MetaValue& v : x.values) out.push_back(to_json(v));
    return out;
  }
  template <class T>
  Json operator()(const std::vector<T>& x) const {
    if (x.size() > whole_array) return {{"type", consonant::name(type)}, {"length", x.size()}};
    Json out = Json::array();
    for (size_t i = 0; i < x.size(); ++i) out.push_back((*this)(static_cast<T>(x[i])));
    return out;
  }

  static Json to_json(const MetaValue& v) { return std::visit(AsJson{v.type}, v.value); }
};

std::string shown(const std::string& key, const MetaValue& value) {
  std::string text = std::visit(Shown{value.type}, value.value);
  const auto* file_type = std::get_if<int64_t>(&value.value);
  if (key == "general.file_type" && file_type && !file_type_name(*file_type).empty())
    text += fmt::format(" ({})", file_type_name(*file_type));
  return text;
}

}  // namespace

std::string describe_model(const ModelFile& model, bool tensors) {
  const auto sums = sums_by_type(model);
  const Sum all = total(sums);
  std::string out = fmt::format("{}: {}, {}\n", model.meta->source, model.format, human(model.file_bytes, "B"));
  if (model.files.size() > 1)
    for (const auto& file : model.files) out += fmt::format("  {}\n", file.string());
  out += fmt::format("\nmetadata ({}):\n", model.meta->entries().size());
  size_t width = 0;
  for (const auto& [key, value] : model.meta->entries()) width = std::max(width, std::min<size_t>(key.size(), 48));
  for (const auto& [key, value] : model.meta->entries())
    out += fmt::format("  {:{}}  {}  {}\n", one_line(key), width, value.describe(), shown(key, value));

  out += fmt::format("\ntensors: {}, {} parameters, {}\n", all.tensors, human(all.elements), human(all.bytes, "B"));
  for (const auto& [type, s] : sums)
    out += fmt::format("  {:8} {:5} tensors  {:>10} parameters  {:>10}\n", type, s.tensors, human(s.elements),
                       human(s.bytes, "B"));
  if (!tensors) return out;
  out += '\n';
  width = 0;
  for (const StoredTensor& t : model.tensors) width = std::max(width, std::min<size_t>(t.name.size(), 48));
  for (const StoredTensor& t : model.tensors)
    out += fmt::format("  {:{}}  {:6}  {:>10}  {}\n", one_line(t.name), width, name(t.type), human(t.bytes, "B"),
                       to_string(t.sizes));
  return out;
}

Json model_to_json(const ModelFile& model, bool tensors) {
  const auto sums = sums_by_type(model);
  const Sum all = total(sums);
  Json out = {{"source", sanitize_utf8(model.meta->source)},
              {"format", model.format},
              {"files", Json::array()},
              {"file_bytes", model.file_bytes},
              {"metadata", Json::object()},
              {"metadata_types", Json::object()},
              {"tensor_count", all.tensors},
              {"parameters", all.elements},
              {"tensor_bytes", all.bytes},
              {"bytes_by_type", Json::object()}};
  for (const auto& file : model.files) out["files"].push_back(sanitize_utf8(file.string()));
  for (const auto& [key, value] : model.meta->entries()) {
    out["metadata"][key] = AsJson::to_json(value);
    out["metadata_types"][key] = value.describe();
  }
  for (const auto& [type, s] : sums) out["bytes_by_type"][std::string(type)] = s.bytes;
  if (!tensors) return out;
  Json list = Json::array();
  for (const StoredTensor& t : model.tensors)
    list.push_back({{"name", t.name}, {"type", name(t.type)}, {"shape", t.sizes}, {"bytes", t.bytes}});
  out["tensors"] = std::move(list);
  return out;
}

}  // namespace consonant
