// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/byte_level.hpp"
#include "formats/meta.hpp"

// Metadata of tokenizers for tests, made by hand.
namespace consonant::testing_text {

class MetaBuilder {
 public:
  MetaBuilder() { meta_->source = "test.gguf"; }
  MetaBuilder& string(const std::string& key, std::string value) {
    return put(key, {MetaType::string, false, meta_->keep(std::move(value))});
  }
  MetaBuilder& integer(const std::string& key, int64_t value) { return put(key, {MetaType::u32, false, value}); }
  MetaBuilder& boolean(const std::string& key, bool value) { return put(key, {MetaType::boolean, false, value}); }
  MetaBuilder& strings(const std::string& key, const std::vector<std::string>& values) {
    MetaStrings views;
    for (const std::string& value : values) views.push_back(meta_->keep(value));
    return put(key, {MetaType::string, true, std::move(views)});
  }
  MetaBuilder& integers(const std::string& key, MetaInts values) {
    return put(key, {MetaType::i32, true, std::move(values)});
  }
  MetaBuilder& numbers(const std::string& key, MetaFloats values) {
    return put(key, {MetaType::f32, true, std::move(values)});
  }
  std::shared_ptr<Meta> meta() const { return meta_; }
  const Meta& operator*() const { return *meta_; }

 private:
  MetaBuilder& put(const std::string& key, MetaValue value) {
    meta_->replace("tokenizer.ggml." + key, std::move(value));
    return *this;
  }
  std::shared_ptr<Meta> meta_ = std::make_shared<Meta>();
};

// Bytes as byte-level vocabularies write them.
inline std::string byte_level(std::string_view bytes) {
  std::string text;
  append_chars_of(bytes, text);
  return text;
}

}  // namespace consonant::testing_text
