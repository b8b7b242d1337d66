// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {

namespace {

template <class T>
uint64_t load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Eight bytes a step, the last ones overlapping: a word is folded in by a multiplication, whose high bits are brought
// down for the next.
uint64_t hash_of(std::string_view text) {
  constexpr uint64_t odd = 0x9E3779B97F4A7C15u;
  const char* p = text.data();
  const size_t n = text.size();
  uint64_t h = n * odd;
  const auto fold = [&](uint64_t word) {
    h = (h ^ word) * odd;
    h ^= h >> 32;
  };
  if (n >= 8) {
    for (size_t at = 0; at + 8 < n; at += 8) fold(load<uint64_t>(p + at));
    fold(load<uint64_t>(p + n - 8));
  } else if (n >= 4) {
    fold(load<uint32_t>(p) << 32 | load<uint32_t>(p + n - 4));
  } else if (n > 0) {
    fold(load<uint8_t>(p) << 16 | load<uint8_t>(p + n / 2) << 8 | load<uint8_t>(p + n - 1));
  }
  h *= odd;
  return h ^ h >> 29;
}

// Texts that end an answer wherever a model has them as control tokens, whatever ids its metadata states: turn ends of
// the chat families, and the marks after which a code model would begin another file.
constexpr std::string_view end_texts[] = {"<|eot_id|>",    "<|im_end|>",
                                          "<|end|>",       "<|return|>",
                                          "<|call|>",      "<|calls|>",
                                          "<|flush|>",     "<end_of_turn>",
                                          "<|endoftext|>", "<|end_of_text|>",
                                          "</s>",          "<eos>",
                                          "<|eom_id|>",    "<EOT>",
                                          "_<EOT>",        "[EOT]",
                                          "[EOS]",         "<end_of_utterance>",
                                          "<turn|>",       "<|fim_pad|>",
                                          "<fim-pad>",     "<fim_pad>",
                                          "<|fim_repo|>",  "<|repo_name|>",
                                          "<fim-repo>",    "<reponame>",
                                          "<|file_sep|>",  "<｜end▁of▁sentence｜>"};

constexpr std::string_view eot_texts[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",         "<|endoftext|>",     "<|end_of_text|>",
    "<EOT>",      "_<EOT>",     "[EOT]",   "<｜end▁of▁sentence｜>", "<end_of_utterance>"};

}  // namespace

std::string_view name(TokenType type) {
  constexpr std::string_view names[] = {"undefined", "normal", "unknown", "control", "user-defined", "unused", "byte"};
  return names[static_cast<size_t>(type)];
}

int32_t TokenIndex::build(std::span<const std::string_view> tokens) {
  tokens_ = tokens;
  slots_.assign(std::bit_ceil(tokens.size() * 2 + 2), Slot{});
  mask_ = slots_.size() - 1;
  // Slots lie all over the table: each is asked for some tokens before its turn, so that the waits overlap.
  constexpr size_t ahead = 16;
  std::array<uint64_t, ahead> hashes;
  const auto prepare = [&](size_t i) {
    if (i >= tokens.size()) return;
    hashes[i % ahead] = hash_of(tokens[i]);
    __builtin_prefetch(&slots_[hashes[i % ahead] & mask_], 1);
  };
  for (size_t i = 0; i < ahead; ++i) prepare(i);
  int32_t duplicate = -1;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint64_t h = hashes[i % ahead];
    prepare(i + ahead);
    if (tokens[i].empty()) continue;
    const auto tag = static_cast<uint32_t>(h >> 32);
    size_t at = h & mask_;
    for (; slots_[at].id >= 0; at = (at + 1) & mask_)
      if (slots_[at].tag == tag && tokens[static_cast<size_t>(slots_[at].id)] == tokens[i]) break;
    if (slots_[at].id < 0)
      slots_[at] = {tag, static_cast<int32_t>(i)};
    else if (duplicate < 0)
      duplicate = static_cast<int32_t>(i);
  }
  return duplicate;
}

int32_t TokenIndex::find(std::string_view text) const {
  if (text.empty() || slots_.empty()) return -1;
  const uint64_t h = hash_of(text);
  const auto tag = static_cast<uint32_t>(h >> 32);
  for (size_t at = h & mask_; slots_[at].id >= 0; at = (at + 1) & mask_)
    if (slots_[at].tag == tag && tokens_[static_cast<size_t>(slots_[at].id)] == text) return slots_[at].id;
  return -1;
}

Vocabulary::Vocabulary(const Meta& meta) : source_(meta.source) {
  tokens_ = meta.strings("tokenizer.ggml.tokens");
  if (tokens_.empty()) bad_input("{}: tokenizer.ggml.tokens is empty", source_);
  if (tokens_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    bad_input("{}: tokenizer.ggml.tokens: {} tokens, more than an id can count", source_, tokens_.size());
  for (size_t i = 0; i < tokens_.size(); ++i) {
    longest_ = std::max(longest_, tokens_[i].size());
    if (const size_t bad = find_bad_utf8(tokens_[i]); bad != std::string_view::npos)
      bad_input("{}: tokenizer.ggml.tokens: token {} isn't UTF-8 (byte {} of it)", source_, i, bad);
  }
  if (const int32_t again = index_.build(tokens_); again >= 0)
    bad_input("{}: tokenizer.ggml.tokens: '{}' is both token {} and token {}", source_,
              tokens_[static_cast<size_t>(again)], find(tokens_[static_cast<size_t>(again)]), again);
  load_types(meta);
  load_specials(meta);
  load_ends(meta);
}

size_t Vocabulary::checked(int32_t id) const {
  if (id < 0 || id >= size()) bad_input("{}: token id {}: the vocabulary has ids 0 to {}", source_, id, size() - 1);
  return static_cast<size_t>(id);
}

void Vocabulary::load_types(const Meta& meta) {
  constexpr std::string_view key = "tokenizer.ggml.token_type";
  types_.assign(tokens_.size(), TokenType::normal);
  typed_ = meta.has(key);
  if (!typed_) return;
  const MetaInts& stored = meta.integers(key);
  if (stored.size() != tokens_.size())
    bad_input("{}: {}: {} values for {} tokens", source_, key, stored.size(), tokens_.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    if (stored[i] < 0 || stored[i] > static_cast<int64_t>(TokenType::byte))
      bad_input("{}: {}: token {} has type {}: types are 0 to 6", source_, key, i, stored[i]);
    types_[i] = static_cast<TokenType>(stored[i]);
  }
}

int32_t Vocabulary::special(const Meta& meta, std::string_view key) const {
  if (!meta.has(key)) return -1;
  const int64_t id = meta.integer(key);
  if (id < 0 || id >= size()) bad_input("{}: {} is {}: the vocabulary has ids 0 to {}", source_, key, id, size() - 1);
  return static_cast<int32_t>(id);
}

void Vocabulary::load_specials(const Meta& meta) {
  bos = special(meta, "tokenizer.ggml.bos_token_id");
  eos = special(meta, "tokenizer.ggml.eos_token_id");
  eot = special(meta, "tokenizer.ggml.eot_token_id");
  eom = special(meta, "tokenizer.ggml.eom_token_id");
  unknown = special(meta, "tokenizer.ggml.unknown_token_id");
  padding = special(meta, "tokenizer.ggml.padding_token_id");
  // Without types, what the metadata calls special is control; the text of the others stays text.
  if (!typed_)
    for (const int32_t id : {bos, eos, eot, eom, padding})
      if (id >= 0) types_[static_cast<size_t>(id)] = TokenType::control;
  if (unknown < 0) {
    const auto it = std::find(types_.begin(), types_.end(), TokenType::unknown);
    if (it != types_.end()) unknown = static_cast<int32_t>(it - types_.begin());
  }
  for (const std::string_view text : eot_texts) {
    if (eot >= 0) break;
    const int32_t id = find(text);
    if (id >= 0 && type(id) == TokenType::control) eot = id;
  }
}

void Vocabulary::load_ends(const Meta& meta) {
  for (const std::string_view text : end_texts) {
    const int32_t id = find(text);
    if (id >= 0 && type(id) == TokenType::control) ends.push_back(id);
  }
  // In the harmony format <|end|> closes one message of an answer that goes on; <|return|> and <|call|> end it.
  const int32_t message_end = find("<|end|>");
  if (message_end >= 0 && message_end != eos && (find("<|return|>") >= 0 || find("<|call|>") >= 0)) {
    std::erase(ends, message_end);
    if (!meta.has("tokenizer.ggml.eot_token_id") && eot == message_end) eot = -1;
  }
  for (const std::string_view key :
       {"tokenizer.ggml.fim_pad_token_id", "tokenizer.ggml.fim_rep_token_id", "tokenizer.ggml.fim_sep_token_id"})
    if (const int32_t id = special(meta, key); id >= 0) ends.push_back(id);
  for (const int32_t id : {eos, eot, eom})
    if (id >= 0) ends.push_back(id);
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
}

}  // namespace consonant
