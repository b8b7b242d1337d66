// SPDX-License-Identifier: Apache-2.0
#include "models/qwen3_tts_vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

std::string key(std::string_view rest) { return fmt::format("qwen3tts.{}", rest); }

int64_t size(const Meta& meta, std::string_view name, int64_t most) {
  const std::string k = key(name);
  const int64_t n = meta.integer(k);
  if (n < 1 || n > most) bad_input("{}: {} is {}, not 1 to {}", meta.source, k, n, most);
  return n;
}

int32_t checked(const Meta& meta, std::string_view k, int64_t id, int64_t rows) {
  if (id < 0 || id >= rows) bad_input("{}: {} is {}, but the table has {} rows", meta.source, k, id, rows);
  return static_cast<int32_t>(id);
}

// Two or three lists that belong together.
void check_lengths(const Meta& meta, std::string_view names, size_t n, std::string_view ids, size_t m) {
  if (n != m) bad_input("{}: {} has {} entries and {} {}", meta.source, names, n, ids, m);
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

float number(const Meta& meta, std::string_view name, double fallback, double most) {
  const std::string k = key(name);
  const double x = meta.number(k, fallback);
  if (!(x > 0 && x <= most)) bad_input("{}: {} is {}, should be above 0 and at most {}", meta.source, k, x, most);
  return static_cast<float>(x);
}

TtsVocabulary::Draws draws(const Meta& meta, const char* prefix) {
  const auto name = [&](const char* rest) { return fmt::format("consonant.{}{}", prefix, rest); };
  const std::string k = key(name("top_k"));
  const int64_t top_k = meta.integer(k, 50);
  if (top_k < 0 || top_k > 1 << 20) bad_input("{}: {} is {}, not 0 to {}", meta.source, k, top_k, 1 << 20);
  return {number(meta, name("temperature"), 0.9, 100), number(meta, name("top_p"), 1, 1), static_cast<int32_t>(top_k)};
}

template <class T>
const T* find_name(const std::vector<T>& all, std::string_view name) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const T& one) { return same_name(one.name, name); });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace

TtsVocabulary::TtsVocabulary(const Meta& meta) {
  text = size(meta, "talker.text_vocab_size", 1 << 24);
  codes = size(meta, "talker.vocab_size", 1 << 20);
  groups = size(meta, "talker.n_code_groups", 64);
  book = size(meta, "code_pred.vocab_size", 1 << 20);
  if (groups < 2) bad_input("{}: {} is 1: there is nothing to predict", meta.source, key("talker.n_code_groups"));
  if (size(meta, "code_pred.n_code_groups", 64) != groups)
    bad_input("{}: {} is {}, the talker has {}", meta.source, key("code_pred.n_code_groups"),
              meta.integer(key("code_pred.n_code_groups")), groups);
  if (codes != book + reserved)
    bad_input("{}: {} is {}, should be {} more than the {} of {}", meta.source, key("talker.vocab_size"), codes,
              reserved, book, key("code_pred.vocab_size"));
  const auto text_id = [&](const char* name) { return checked(meta, key(name), meta.integer(key(name)), text); };
  const auto code_id = [&](const char* name) {
    const std::string k = key(fmt::format("talker.{}", name));
    return checked(meta, k, meta.integer(k), codes);
  };
  text_bos = text_id("tts_bos_token_id"), text_eos = text_id("tts_eos_token_id");
  text_pad = text_id("tts_pad_token_id"), turn_start = text_id("im_start_token_id");
  turn_end = text_id("im_end_token_id");
  assistant = meta.has(key("assistant_token_id")) ? text_id("assistant_token_id") : -1;
  bos = code_id("codec_bos_id"), pad = code_id("codec_pad_id"), end = code_id("codec_eos_token_id");
  think = code_id("codec_think_id"), no_think = code_id("codec_nothink_id");
  think_bos = code_id("codec_think_bos_id"), think_eos = code_id("codec_think_eos_id");

  const std::string_view type = meta.string(key("tts_model_type"), "base");
  if (type == "custom_voice")
    kind = Kind::custom_voice;
  else if (type == "voice_design")
    kind = Kind::voice_design;
  else if (type != "base")
    bad_input("{}: {} is '{}'; known are base, custom_voice and voice_design", meta.source, key("tts_model_type"),
              sanitize_utf8(type));

  if (const std::string names = key("codec_language_names"), ids = key("codec_language_ids"); meta.has(names)) {
    check_lengths(meta, names, meta.strings(names).size(), ids, meta.integers(ids).size());
    for (size_t i = 0; i < meta.integers(ids).size(); ++i)
      languages.push_back({std::string(meta.strings(names)[i]), checked(meta, ids, meta.integers(ids)[i], codes)});
  }
  if (const std::string names = key("spk_names"), ids = key("spk_token_ids"); meta.has(names)) {
    check_lengths(meta, names, meta.strings(names).size(), ids, meta.integers(ids).size());
    const std::string dialects = key("spk_dialect_token_ids");
    if (meta.has(dialects))
      check_lengths(meta, names, meta.strings(names).size(), dialects, meta.integers(dialects).size());
    for (size_t i = 0; i < meta.integers(ids).size(); ++i) {
      const int64_t dialect = meta.has(dialects) ? meta.integers(dialects)[i] : 0;  // 0: none
      speakers.push_back({std::string(meta.strings(names)[i]), checked(meta, ids, meta.integers(ids)[i], codes),
                          dialect == 0 ? -1 : checked(meta, dialects, dialect, codes)});
    }
  }
  first = draws(meta, ""), others = draws(meta, "subtalker_");
  repeat_penalty = number(meta, "consonant.repetition_penalty", 1.05, 100);
}

const TtsVocabulary::Language* TtsVocabulary::language(std::string_view name) const {
  return find_name(languages, name);
}

const TtsVocabulary::Speaker* TtsVocabulary::speaker(std::string_view name) const { return find_name(speakers, name); }

}  // namespace consonant
