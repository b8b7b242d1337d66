// SPDX-License-Identifier: Apache-2.0
#include "text/pre_tokenizer.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

constexpr std::string_view gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
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
constexpr std::string_view deepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view digit = R"(\p{N})";

std::vector<PreTokenizerRule> make_rules() {
  std::vector<PreTokenizerRule> rules;
  const auto add = [&](std::vector<std::string_view> names, std::vector<std::string_view> patterns) {
    for (const std::string_view name : names) rules.push_back({.name = name, .patterns = patterns});
    return names.size();
  };
  const auto with = [&](size_t count, auto change) {
    for (size_t i = rules.size() - count; i < rules.size(); ++i) change(rules[i]);
  };
  const auto nfc = [](PreTokenizerRule& r) { r.nfc = true; };
  const auto whole = [](PreTokenizerRule& r) { r.whole_words = r.add_bos = true; };

  add({"gpt-2", "phi-2", "whisper"}, {gpt2});
  with(add({"olmo", "mpt"}, {gpt2}), nfc);
  add({"smollm", "starcoder", "refact"}, {digit, gpt2});
  with(add({"command-r"}, {digit, gpt2}), nfc);
  with(add({"llama-bpe", "llama3", "llama-v3", "falcon3", "lfm2"}, {llama3}), whole);
  add({"glm4", "chatglm-bpe", "dbrx", "smaug-bpe"}, {llama3});
  with(add({"qwen2"}, {qwen2}), nfc);
  with(add({"qwen35"}, {qwen35}), nfc);
  add({"gpt-4o", "llama4"}, {o200k});
  with(add({"tekken"}, {tekken}), whole);
  add({"deepseek-v3"}, {R"(\p{N}{1,3})", "[一-龥\u3040-\u309F\u30A0-\u30FF]+", deepseek3});
  add({"deepseek-coder"}, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", "[一-龥ࠀ-一가-\uD7FF]+", digit});
  // What the published tools of the format do with files that carry no better name.
  add({"default"}, {R"([\p{P}$+<=>^~|]+)", gpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"});
  return rules;
}

// PCRE2's \s takes U+180E besides Unicode's White_Space, which the tokenizers' own engines don't.
std::string with_unicode_spaces(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      out += pattern[i];
      continue;
    }
    const char kind = pattern[++i];
    if (kind == 's' || kind == 'S')
      out += kind == 's' ? "\\p{White_Space}" : "\\P{White_Space}";
    else
      (out += '\\') += kind;
  }
  return out;
}

std::string message_of(int code) {
  PCRE2_UCHAR text[256];
  return pcre2_get_error_message(code, text, sizeof text) < 0 ? "error " + std::to_string(code)
                                                              : reinterpret_cast<const char*>(text);
}

}  // namespace

const std::vector<PreTokenizerRule>& pre_tokenizer_rules() {
  static const std::vector<PreTokenizerRule> rules = make_rules();
  return rules;
}

const PreTokenizerRule& find_pre_tokenizer(const Meta& meta) {
  constexpr std::string_view key = "tokenizer.ggml.pre";
  const std::string_view name = meta.string(key, std::string_view());
  std::string known;
  for (const PreTokenizerRule& rule : pre_tokenizer_rules()) {
    if (rule.name == name) return rule;
    (known += known.empty() ? "" : ", ") += rule.name;
  }
  std::string found = name.empty() ? "no name" : fmt::format("'{}'", sanitize_utf8(name));
  // A Hugging Face folder holds the definition instead of a name.
  const std::string_view definition = meta.string("tokenizer.consonant.pre_tokenizer", std::string_view());
  if (!definition.empty()) found = fmt::format("the definition {}", sanitize_utf8(definition));
  bad_input(
      "{}: {}: how this model splits text into words isn't known: found {}, known are {}. If you know that it was "
      "trained with one of these, say so: --override-kv {}=str:NAME",
      meta.source, key, found, known, key);
}

struct Splitter::Pattern {
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  std::unique_ptr<pcre2_code, Free> code;
  std::string text;

  explicit Pattern(std::string_view source) : text(with_unicode_spaces(source)) {
    int error;
    PCRE2_SIZE at;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), PCRE2_UTF | PCRE2_UCP, &error, &at,
                             nullptr));
    if (!code) throw_error(Exit::failed, "splitting pattern {}: {} at {}", text, message_of(error), at);
    // Where the system allows no generated code the interpreter runs the same pattern: slower, the same matches.
    static_cast<void>(pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE));
  }

  // Cuts each piece at the matches; what lies between them stays a piece.
  void split(const std::vector<std::string_view>& in, std::vector<std::string_view>& out) const {
    const std::unique_ptr<pcre2_match_data, Free> data(pcre2_match_data_create_from_pattern(code.get(), nullptr));
    if (!data) throw std::bad_alloc();
    for (const std::string_view piece : in) {
      size_t from = 0;  // everything before has been given out
      for (size_t at = 0; at < piece.size();) {
        if (!match(piece, at, data.get())) break;
        const PCRE2_SIZE* span = pcre2_get_ovector_pointer(data.get());
        const size_t begin = span[0], end = span[1];
        if (end <= begin) throw_error(Exit::failed, "splitting pattern {} matches nothing", text);
        if (begin > from) out.push_back(piece.substr(from, begin - from));
        out.push_back(piece.substr(begin, end - begin));
        from = at = end;
      }
      if (from < piece.size()) out.push_back(piece.substr(from));
    }
  }

  bool match(std::string_view piece, size_t at, pcre2_match_data* data) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    int result = pcre2_match(code.get(), subject, piece.size(), at, PCRE2_NO_UTF_CHECK, data, nullptr);
    // Compiled code runs on a small stack; the interpreter keeps its state on the heap.
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
      result = pcre2_match(code.get(), subject, piece.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, nullptr);
    if (result == PCRE2_ERROR_NOMATCH) return false;
    if (result < 0) throw_error(Exit::failed, "splitting pattern {}: {}", text, message_of(result));
    return true;
  }
};

Splitter::Splitter(const PreTokenizerRule& rule) {
  for (const std::string_view pattern : rule.patterns) patterns_.push_back(std::make_unique<Pattern>(pattern));
}

Splitter::~Splitter() = default;
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;

std::vector<std::string_view> Splitter::split(std::string_view text) const {
  std::vector<std::string_view> pieces, next;
  if (!text.empty()) pieces.push_back(text);
  for (const auto& pattern : patterns_) {
    next.clear();
    pattern->split(pieces, next);
    pieces.swap(next);
  }
  return pieces;
}

}  // namespace consonant
