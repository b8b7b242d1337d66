// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_config.hpp"

#include <cmath>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace consonant {

namespace {

std::string shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 100);
}

}  // namespace

HfConfig::HfConfig(Json object, std::string source)
    : HfConfig(std::make_shared<const Json>(std::move(object)), std::move(source)) {}

HfConfig::HfConfig(std::shared_ptr<const Json> object, std::string source)
    : object_(std::move(object)), source_(std::move(source)) {
  if (!object_->is_object()) bad_input("{}: is no JSON object", source_);
}

void HfConfig::wrong(std::string_view key, const Json& found, std::string_view wanted) const {
  bad_input("{}: \"{}\" is {}, should be {}", source_, key, shown(found), wanted);
}

const Json* HfConfig::find(std::string_view key) const {
  const auto at = object_->find(key);
  return at == object_->end() || at->is_null() ? nullptr : &*at;
}

int64_t HfConfig::count(std::string_view key) const {
  const Json* found = find(key);
  if (!found) bad_input("{}: \"{}\" is missing", source_, key);
  if (!found->is_number_unsigned() || found->get<uint64_t>() < 1 ||
      found->get<uint64_t>() > std::numeric_limits<int32_t>::max())
    wrong(key, *found, "a whole number from 1 to 2147483647");
  return found->get<int64_t>();
}

int64_t HfConfig::count(std::string_view key, int64_t fallback) const { return has(key) ? count(key) : fallback; }

std::optional<int64_t> HfConfig::id(std::string_view key) const {
  const Json* found = find(key);
  if (found && found->is_array()) {
    if (found->empty()) return std::nullopt;
    found = &found->front();
  }
  if (!found) return std::nullopt;
  if (!found->is_number_unsigned() || found->get<uint64_t>() > std::numeric_limits<int32_t>::max()) {
    if (found->is_number_integer() && found->get<int64_t>() == -1) return std::nullopt;  // "none" in published configs
    wrong(key, *found, "a token id");
  }
  return found->get<int64_t>();
}

double HfConfig::number(std::string_view key) const {
  const Json* found = find(key);
  if (!found) bad_input("{}: \"{}\" is missing", source_, key);
  if (!found->is_number() || !std::isfinite(found->get<double>())) wrong(key, *found, "a number");
  return found->get<double>();
}

double HfConfig::number(std::string_view key, double fallback) const { return has(key) ? number(key) : fallback; }

bool HfConfig::boolean(std::string_view key, bool fallback) const {
  const Json* found = find(key);
  if (!found) return fallback;
  if (!found->is_boolean()) wrong(key, *found, "true or false");
  return found->get<bool>();
}

std::string HfConfig::string(std::string_view key, std::string_view fallback) const {
  const Json* found = find(key);
  if (!found) return std::string(fallback);
  if (!found->is_string()) wrong(key, *found, "a string");
  return found->get<std::string>();
}

HfConfig HfConfig::object(std::string_view key) const {
  const Json* found = find(key);
  if (found && !found->is_object()) wrong(key, *found, "an object");
  const std::string name = fmt::format("{}: \"{}\"", source_, key);
  return found ? HfConfig(std::shared_ptr<const Json>(object_, found), name) : HfConfig(Json::object(), name);
}

void HfConfig::require(std::string_view key, const Json& wanted) const {
  const Json* found = find(key);
  if (found && *found != wanted)
    bad_input("{}: \"{}\" is {}: only {} is supported for this architecture", source_, key, shown(*found),
              shown(wanted));
}

void HfConfig::refuse(std::string_view key) const {
  if (const Json* found = find(key))
    bad_input("{}: \"{}\" is {}: not supported for this architecture", source_, key, shown(*found));
}

HfConfig HfConfig::rope(std::string_view kind) const {
  HfConfig out = object(has("rope_parameters") ? "rope_parameters" : "rope_scaling");
  if (!kind.empty() && out.has(kind)) out = out.object(kind);
  // The older style has the base outside, and called the type "type".
  Json whole = *out.object_;
  if (!out.has("rope_theta") && has("rope_theta")) whole["rope_theta"] = *find("rope_theta");
  if (!out.has("rope_type")) whole["rope_type"] = out.string("type", "default");
  return HfConfig(std::move(whole), out.source_);
}

void add_u32(Meta& meta, std::string key, int64_t value) { meta.add(std::move(key), {MetaType::u32, false, value}); }

void add_f32(Meta& meta, std::string key, double value) {
  meta.add(std::move(key), {MetaType::f32, false, static_cast<double>(static_cast<float>(value))});
}

void add_bool(Meta& meta, std::string key, bool value) { meta.add(std::move(key), {MetaType::boolean, false, value}); }

void add_string(Meta& meta, std::string key, std::string value) {
  meta.add(std::move(key), {MetaType::string, false, meta.keep(std::move(value))});
}

}  // namespace consonant
