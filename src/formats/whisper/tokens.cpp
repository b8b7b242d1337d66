// SPDX-License-Identifier: Apache-2.0
#include "formats/whisper/tokens.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/hf_config.hpp"

namespace consonant {

namespace {

constexpr std::array<std::string_view, 100> languages = {
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt",  "tr", "pl", "ca", "nl", "ar", "sv", "it", "id",
    "hi", "fi", "vi", "he", "uk", "el", "ms", "cs", "ro",  "da", "hu", "ta", "no", "th", "ur", "hr", "bg",
    "lt", "la", "mi", "ml", "cy", "sk", "te", "fa", "lv",  "bn", "sr", "az", "sl", "kn", "et", "mk", "br",
    "eu", "is", "hy", "ne", "mn", "bs", "kk", "sq", "sw",  "gl", "mr", "pa", "si", "km", "sn", "yo", "so",
    "af", "oc", "ka", "be", "tg", "sd", "gu", "am", "yi",  "lo", "uz", "fo", "ht", "ps", "tk", "nn", "mt",
    "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln", "ha", "ba", "jw", "su", "yue"};

constexpr std::string_view end_text = "<|endoftext|>", translate_text = "<|translate|>";

// The six that follow the languages. The fifth was "<|nocaptions|>" in the first files.
constexpr std::array<std::string_view, 6> task_texts = {translate_text,    "<|transcribe|>", "<|startoflm|>",
                                                        "<|startofprev|>", "<|nospeech|>",   "<|notimestamps|>"};
constexpr std::string_view old_no_speech = "<|nocaptions|>";

constexpr int64_t smallest = 51864;   // English only: 50,256 words, 99 languages, 1,501 timestamps
constexpr size_t longest_word = 256;  // characters of a word whose merges are looked for; the longest known has 128

// Whether what a file has at an id can be the control token of that id.
bool fits(const WhisperControls& controls, int64_t id, std::string_view text) {
  if (text.empty()) return true;
  if (id == controls.no_speech() && text == old_no_speech) return true;
  if (id >= controls.first_language() && id < controls.translate())  // any code, in whatever order
    return text.size() > 4 && text.starts_with("<|") && text.ends_with("|>");
  return text == whisper_control_text(controls, id);
}

void check_texts(std::span<const std::string_view> texts, const WhisperControls& controls, std::string_view source) {
  const auto size = static_cast<int64_t>(texts.size());
  if (controls.first_timestamp() > size)
    bad_input("{}: the vocabulary ends at id {}, but its last control token would be {}", source, size - 1,
              controls.first_timestamp() - 1);
  for (int64_t id = controls.end; id < size; ++id)
    if (const std::string_view text = texts[static_cast<size_t>(id)]; !fits(controls, id, text))
      bad_input("{}: token {} of {} is \"{}\", where Whisper's vocabulary has \"{}\"", source, id, size,
                sanitize_utf8(text), whisper_control_text(controls, id));
}

// A model of a published size has the control tokens of that size: with the texts of another one, which often fit into
// its ids, it would write words that it doesn't mean.
void check_size(int64_t size, const WhisperControls& controls, std::string_view source) {
  if (size < smallest || size > smallest + 2) return;
  const WhisperControls expected = whisper_controls(size, source);
  if (controls.end == expected.end && controls.languages == expected.languages) return;
  bad_input(
      "{}: the vocabulary is another model's: {} has id {} with {} languages, where a model of {} tokens has {} "
      "with {}",
      source, end_text, controls.end, controls.languages, size, expected.end, expected.languages);
}

std::optional<int32_t> position(std::span<const std::string_view> texts, std::string_view text) {
  const auto at = std::find(texts.begin(), texts.end(), text);
  return at == texts.end() ? std::nullopt : std::optional(static_cast<int32_t>(at - texts.begin()));
}

}  // namespace

std::span<const std::string_view> whisper_languages() { return languages; }

WhisperControls whisper_controls(int64_t size, std::string_view source) {
  if (size < smallest || size > smallest + 2)
    bad_input("{}: a vocabulary of {} tokens; Whisper's have {} (English only), {} or {}", source, size, smallest,
              smallest + 1, smallest + 2);
  return {size == smallest ? 50256 : 50257, size == smallest + 2 ? 100 : 99};
}

WhisperControls whisper_controls(std::span<const std::string_view> texts, std::string_view source) {
  const auto end = position(texts, end_text), translate = position(texts, translate_text);
  if (!end || !translate)
    bad_input("{}: the vocabulary isn't Whisper's: it has no \"{}\"", source, end ? translate_text : end_text);
  if (*translate < *end + 2)
    bad_input("{}: the vocabulary isn't Whisper's: \"{}\" has id {}, \"{}\" has {}", source, end_text, *end,
              translate_text, *translate);
  const WhisperControls controls{*end, *translate - *end - 2};
  check_texts(texts, controls, source);
  check_size(static_cast<int64_t>(texts.size()), controls, source);
  return controls;
}

std::string whisper_control_text(const WhisperControls& controls, int64_t id) {
  if (id == controls.end) return std::string(end_text);
  if (id == controls.start()) return "<|startoftranscript|>";
  if (id < controls.translate()) {
    const auto number = static_cast<size_t>(id - controls.first_language());
    return number < languages.size() ? fmt::format("<|{}|>", languages[number]) : fmt::format("<|language{}|>", number);
  }
  if (id < controls.first_timestamp()) return std::string(task_texts[static_cast<size_t>(id - controls.translate())]);
  const int64_t steps = id - controls.first_timestamp();  // 0.02 s each
  return fmt::format("<|{}.{:02}|>", steps / 50, steps % 50 * 2);
}

RankedMerges::RankedMerges(std::span<const std::string> texts, size_t count)
    : slots_(std::bit_ceil(2 * std::min(count, texts.size()) + 2)) {
  for (size_t i = 0; i < std::min(count, texts.size()); ++i) {
    if (texts[i].empty()) continue;
    Slot& slot = slots_[slot_of(texts[i])];
    if (slot.id < 0) slot = {texts[i], static_cast<int32_t>(i)};
  }
}

size_t RankedMerges::slot_of(std::string_view text) const {
  uint64_t h = 0xCBF29CE484222325u;
  for (const char c : text) h = (h ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  h ^= h >> 32;
  size_t at = h & (slots_.size() - 1);
  while (slots_[at].id >= 0 && slots_[at].text != text) at = (at + 1) & (slots_.size() - 1);
  return at;
}

int32_t RankedMerges::id(std::string_view text) const { return slots_[slot_of(text)].id; }

std::vector<std::string_view> RankedMerges::split(std::string_view word, int32_t limit) const {
  std::vector<std::string_view> parts;
  for (size_t at = 0; at < word.size();) {
    const size_t start = at;
    utf8_next(word, at);
    parts.push_back(word.substr(start, at - start));
  }
  // A part and its right neighbour are one stretch of the word. rank[i]: of the token that parts i and i + 1 make.
  const auto rank_of = [&](size_t i) {
    const int32_t rank = id({parts[i].data(), parts[i].size() + parts[i + 1].size()});
    return rank < 0 || rank >= limit ? limit : rank;
  };
  std::vector<int32_t> ranks;
  for (size_t i = 0; i + 1 < parts.size(); ++i) ranks.push_back(rank_of(i));
  while (!ranks.empty()) {
    const auto best = std::min_element(ranks.begin(), ranks.end());
    if (*best >= limit) break;
    const auto i = best - ranks.begin();
    const auto at = static_cast<size_t>(i);
    parts[at] = {parts[at].data(), parts[at].size() + parts[at + 1].size()};
    parts.erase(parts.begin() + i + 1);
    ranks.erase(best);
    if (at < ranks.size()) ranks[at] = rank_of(at);
    if (at > 0) ranks[at - 1] = rank_of(at - 1);
  }
  return parts;
}

namespace {

std::vector<std::string> merges_of(std::span<const std::string> texts, const WhisperControls& controls) {
  const RankedMerges ranks(texts, static_cast<size_t>(controls.end));
  std::vector<std::string> merges;
  for (int32_t id = 0; id < controls.end; ++id) {
    const std::string& text = texts[static_cast<size_t>(id)];
    if (text.size() < 2 || text.size() > longest_word || ranks.id(text) != id) continue;
    // All merges that came before bring the token to two parts; its own joins them.
    const auto parts = ranks.split(text, id);
    if (parts.size() == 2) merges.push_back(fmt::format("{} {}", parts[0], parts[1]));
  }
  return merges;
}

}  // namespace

void add_whisper_tokenizer(WhisperTokens tokens, const WhisperControls& controls, Meta& meta) {
  if (!tokens.has_merges) tokens.merges = merges_of(tokens.texts, controls);
  constexpr int64_t normal = 1, control = 3, unused = 5;
  MetaStrings texts, merges;
  MetaInts types;
  for (size_t i = 0; i < tokens.texts.size(); ++i) {
    const auto id = static_cast<int64_t>(i);
    std::string& text = tokens.texts[i];
    const bool known = !text.empty();
    if (id >= controls.end && !known) text = whisper_control_text(controls, id);
    types.push_back(id >= controls.end ? control : known ? normal : unused);
    texts.push_back(meta.keep(std::move(text)));
  }
  for (std::string& merge : tokens.merges) merges.push_back(meta.keep(std::move(merge)));
  MetaInts codes;
  const int32_t spoken = tokens.multilingual ? controls.languages : std::min(controls.languages, 1);
  for (int32_t i = 0; i < spoken; ++i) codes.push_back(controls.first_language() + i);

  meta.add("whisper.language_tokens", {MetaType::i32, true, std::move(codes)});
  add_string(meta, "tokenizer.ggml.model", "gpt2");
  add_string(meta, "tokenizer.ggml.pre", "whisper");
  meta.add("tokenizer.ggml.tokens", {MetaType::string, true, std::move(texts)});
  meta.add("tokenizer.ggml.token_type", {MetaType::i32, true, std::move(types)});
  meta.add("tokenizer.ggml.merges", {MetaType::string, true, std::move(merges)});
  add_u32(meta, "tokenizer.ggml.bos_token_id", controls.start());
  add_u32(meta, "tokenizer.ggml.eos_token_id", controls.end);
  add_bool(meta, "tokenizer.ggml.add_bos_token", false);
  add_bool(meta, "tokenizer.ggml.add_eos_token", false);
}

}  // namespace consonant
