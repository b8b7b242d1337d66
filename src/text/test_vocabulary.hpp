// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/meta.hpp"
#include "text/byte_level.hpp"

// Metadata of tokenizers for tests: from a tokenizer.json, independently of the reader that ships, and made by hand.
namespace consonant::testing_text {

inline nlohmann::json load_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path.string());
  return nlohmann::json::parse(file);
}

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

inline std::string pre_of(const nlohmann::json& tokenizer) {
  const std::string pre = tokenizer.at("pre_tokenizer").dump();
  if (pre.find("{1,3}") != std::string::npos)
    return tokenizer.at("post_processor").dump().find("TemplateProcessing") == std::string::npos ? "glm4" : "llama-bpe";
  return pre.find("Regex") != std::string::npos ? "qwen2" : "gpt-2";
}

inline void add_byte_level(MetaBuilder& meta, const nlohmann::json& tokenizer) {
  std::vector<std::string> merges;
  for (const auto& merge : tokenizer.at("model").at("merges"))
    merges.push_back(merge.at(0).get<std::string>() + " " + merge.at(1).get<std::string>());
  meta.string("model", "gpt2").string("pre", pre_of(tokenizer)).strings("merges", merges);
}

// The order of the merges stands for the scores: what an earlier merge makes has a better one.
inline void add_sentence_piece(MetaBuilder& meta, const nlohmann::json& tokenizer,
                               const std::vector<std::string>& tokens, MetaInts& types) {
  std::map<std::string, double> best;
  double score = 0;
  for (const auto& merge : tokenizer.at("model").at("merges")) {
    best.emplace(merge.at(0).get<std::string>() + merge.at(1).get<std::string>(), score);
    score -= 1;
  }
  MetaFloats scores;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto it = best.find(tokens[i]);
    scores.push_back(it == best.end() ? -1e6 : it->second);
    if (tokens[i].size() == 6 && tokens[i].rfind("<0x", 0) == 0) types[i] = 6;
    if (tokens[i] == "<unk>") types[i] = 2;
  }
  meta.string("model", "llama").numbers("scores", std::move(scores)).boolean("add_space_prefix", false);
}

// Of a Hugging Face folder of the kinds that the fixtures have.
inline std::shared_ptr<Meta> meta_of_tokenizer_json(const std::filesystem::path& folder) {
  const nlohmann::json tokenizer = load_json(folder / "tokenizer.json"),
                       config = load_json(folder / "tokenizer_config.json");
  std::vector<std::string> tokens;
  MetaInts types;
  const auto put = [&](const std::string& token, size_t id, int64_t type) {
    if (tokens.size() <= id) tokens.resize(id + 1), types.resize(id + 1, 5);
    tokens[id] = token;
    types[id] = type;
  };
  for (const auto& [token, id] : tokenizer.at("model").at("vocab").items()) put(token, id.get<size_t>(), 1);
  for (const auto& added : tokenizer.at("added_tokens"))
    put(added.at("content").get<std::string>(), added.at("id").get<size_t>(), added.at("special").get<bool>() ? 3 : 4);
  MetaBuilder meta;
  if (tokenizer.at("model").value("byte_fallback", false))
    add_sentence_piece(meta, tokenizer, tokens, types);
  else
    add_byte_level(meta, tokenizer);
  for (const char* which : {"bos", "eos"}) {
    const std::string text = config.value(std::string(which) + "_token", std::string());
    for (size_t i = 0; i < tokens.size() && !text.empty(); ++i)
      if (tokens[i] == text) meta.integer(std::string(which) + "_token_id", static_cast<int64_t>(i));
  }
  meta.boolean("add_bos_token", config.value("add_bos_token", false));
  meta.strings("tokens", tokens).integers("token_type", std::move(types));
  return meta.meta();
}

}  // namespace consonant::testing_text
