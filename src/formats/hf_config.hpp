// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "formats/json.hpp"
#include "formats/meta.hpp"

namespace consonant {

// A JSON object of a Hugging Face folder, read with checked kinds; null counts as absent. Both generations of keys are
// known: `rope_theta`, `rope_scaling` and `torch_dtype` of published checkpoints; `rope_parameters` and `dtype` of
// transformers 5.
class HfConfig {
 public:
  HfConfig(Json object, std::string source);
  HfConfig(std::shared_ptr<const Json> object, std::string source);

  const std::string& source() const { return source_; }
  const Json* find(std::string_view key) const;  // nullptr: absent or null
  bool has(std::string_view key) const { return find(key) != nullptr; }

  int64_t count(std::string_view key) const;  // a whole number from 1 to 2^31 - 1, required
  int64_t count(std::string_view key, int64_t fallback) const;
  std::optional<int64_t> id(std::string_view key) const;  // a whole number from 0 on; of a list, its first
  double number(std::string_view key) const;              // finite
  double number(std::string_view key, double fallback) const;
  bool boolean(std::string_view key, bool fallback) const;
  std::string string(std::string_view key, std::string_view fallback) const;
  HfConfig object(std::string_view key) const;  // an empty one if absent

  // Refuses the model if `key` is there and isn't `wanted`.
  void require(std::string_view key, const Json& wanted) const;
  // Refuses the model if `key` is there at all.
  void refuse(std::string_view key) const;

  // Rotary parameters of the layers called `kind` ("full_attention"), for models that have more than one kind;
  // rope_theta and rope_type within, whichever style the file has.
  HfConfig rope(std::string_view kind = {}) const;

 private:
  [[noreturn]] void wrong(std::string_view key, const Json& found, std::string_view wanted) const;

  std::shared_ptr<const Json> object_;  // objects within share the whole document
  std::string source_;
};

// Metadata as llama.cpp's converter stores it.
void add_u32(Meta& meta, std::string key, int64_t value);
void add_f32(Meta& meta, std::string key, double value);  // rounded to float
void add_bool(Meta& meta, std::string key, bool value);
void add_string(Meta& meta, std::string key, std::string value);

}  // namespace consonant
