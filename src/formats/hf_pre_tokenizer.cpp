// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "formats/hf_tokenizer.hpp"

namespace consonant {

namespace {

constexpr std::string_view gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view one_digit = R"(\p{N})";
constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
                                    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
                                    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view deepseek3_digits = R"(\p{N}{1,3})";
constexpr std::string_view deepseek3_cjk = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
constexpr std::string_view deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// Names that share patterns differ in what they imply besides; those that imply less stand first.
struct Known {
  std::vector<std::string_view> patterns;
  std::string_view plain, nfc;     // by normaliser; empty: there is no such name, the other serves
  std::string_view whole_words{};  // where whole words are taken, or a beginning-of-text token is added
};

const std::array<Known, 8>& known() {
  static const std::array<Known, 8> all = {{{{gpt2}, "gpt-2", "olmo"},
                                            {{one_digit, gpt2}, "smollm", "command-r"},
                                            {{llama3}, "glm4", "", "llama-bpe"},
                                            {{qwen2}, "", "qwen2"},
                                            {{qwen35}, "", "qwen35"},
                                            {{o200k}, "gpt-4o", ""},
                                            {{tekken}, "tekken", ""},
                                            {{deepseek3_digits, deepseek3_cjk, deepseek3}, "deepseek-v3", ""}}};
  return all;
}

// The patterns by which a definition splits text, in order, each within the pieces of the one before; nothing if it
// does something that patterns don't say.
bool collect(const Json& definition, const std::string& source, std::vector<std::string>& patterns) {
  const HfConfig d(definition, source);
  const std::string type = d.string("type", "");
  if (type == "Sequence") {
    const Json* parts = d.find("pretokenizers");
    if (!parts || !parts->is_array()) return false;
    for (const Json& part : *parts)
      if (!collect(part, source, patterns)) return false;
    return true;
  }
  if (type == "ByteLevel") {
    if (d.boolean("add_prefix_space", true)) return false;
    if (d.boolean("use_regex", true)) patterns.emplace_back(gpt2);
    return true;
  }
  if (type == "Digits") {
    if (!d.boolean("individual_digits", false)) return false;
    patterns.emplace_back(one_digit);
    return true;
  }
  if (type == "Split") {
    const HfConfig pattern = d.object("pattern");
    if (!pattern.has("Regex") || d.boolean("invert", false) || d.string("behavior", "") != "Isolated") return false;
    patterns.push_back(pattern.string("Regex", ""));
    return true;
  }
  return false;
}

std::string normalizer_of(const HfConfig& tokenizer) {
  const Json* definition = tokenizer.find("normalizer");
  if (!definition) return "none";
  const HfConfig d(*definition, tokenizer.source() + ": \"normalizer\"");
  if (d.string("type", "") == "NFC") return "nfc";
  if (d.string("type", "") == "Sequence") {
    const Json* parts = d.find("normalizers");
    if (parts && parts->is_array() && parts->empty()) return "none";
    if (parts && parts->is_array() && parts->size() == 1 && parts->front() == Json{{"type", "NFC"}}) return "nfc";
  }
  return definition->dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

PreTokenizer recognise_pre_tokenizer(const HfConfig& tokenizer, bool ignore_merges, bool adds_bos) {
  PreTokenizer out{"", normalizer_of(tokenizer)};
  if (out.normalizer != "nfc" && out.normalizer != "none") return out;
  const Json* definition = tokenizer.find("pre_tokenizer");
  std::vector<std::string> patterns;
  if (!definition || !collect(*definition, tokenizer.source() + ": \"pre_tokenizer\"", patterns)) return out;
  for (const Known& k : known()) {
    if (!std::equal(patterns.begin(), patterns.end(), k.patterns.begin(), k.patterns.end())) continue;
    const std::string_view first = out.normalizer == "nfc" ? k.nfc : k.plain,
                           second = out.normalizer == "nfc" ? k.plain : k.nfc;
    out.pre = first.empty() ? second : first;
    if (!k.whole_words.empty() && (ignore_merges || adds_bos)) out.pre = k.whole_words;
    break;
  }
  return out;
}

}  // namespace consonant
