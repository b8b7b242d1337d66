// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/meta.hpp"

namespace consonant {

// Codes of the languages, in the order of their tokens: the first 99 are those of every multilingual vocabulary, the
// last one ("yue") came with large-v3.
std::span<const std::string_view> whisper_languages();

// Ids of a vocabulary's control tokens. They follow each other without a gap: end, start, the languages, translate,
// transcribe, start of LM, previous, no speech, no timestamps, and the timestamps up to the vocabulary's end.
struct WhisperControls {
  int32_t end = -1;
  int32_t languages = 0;  // tokens of languages

  int32_t start() const { return end + 1; }
  int32_t first_language() const { return end + 2; }
  int32_t translate() const { return end + 2 + languages; }
  int32_t transcribe() const { return translate() + 1; }
  int32_t start_of_lm() const { return translate() + 2; }
  int32_t previous() const { return translate() + 3; }
  int32_t no_speech() const { return translate() + 4; }
  int32_t no_timestamps() const { return translate() + 5; }
  int32_t first_timestamp() const { return translate() + 6; }
};

// Of the published vocabularies: 51,864 tokens (English only), 51,865 (99 languages), 51,866 (100). Bad input, which
// names `source`, for any other size.
WhisperControls whisper_controls(int64_t size, std::string_view source);

// Of a vocabulary by its texts; those that are empty may be anything. Bad input if the texts are none of Whisper's, or
// not in their order.
WhisperControls whisper_controls(std::span<const std::string_view> texts, std::string_view source);

// The control token at `id`: "<|startoftranscript|>", "<|0.02|>".
std::string whisper_control_text(const WhisperControls& controls, int64_t id);

// A vocabulary on its way into the metadata. Texts are written in byte-level BPE's alphabet.
struct WhisperTokens {
  std::vector<std::string> texts;   // by id; empty: unknown, or one of the controls that files leave out
  std::vector<std::string> merges;  // "left right"
  bool has_merges = false;          // else they are told from the ids: a token that merges make has their rank
  bool multilingual = true;
};

// Adds the `tokenizer.*` keys and `whisper.language_tokens`; fills in the texts that the vocabulary leaves out. The
// beginning token is the one that opens every transcript.
void add_whisper_tokenizer(WhisperTokens tokens, const WhisperControls& controls, Meta& meta);

// The bytes' tokens merged by rank, where a token's rank is its id: how GPT-2's and Whisper's vocabularies were made.
class RankedMerges {
 public:
  // The first `count` texts are tokens.
  RankedMerges(std::span<const std::string> texts, size_t count);

  // Tokens of one word, written in the alphabet, merged by ranks below `limit`.
  std::vector<std::string_view> split(std::string_view word, int32_t limit) const;
  int32_t id(std::string_view text) const;  // -1: no such token

 private:
  struct Slot {
    std::string_view text;
    int32_t id = -1;
  };
  size_t slot_of(std::string_view text) const;
  std::vector<Slot> slots_;
};

// For files that state no lists: tokens of symbols that nobody speaks (brackets, dashes, notes of music), with the
// control tokens that no transcript has; and those that can't come first, a lone space and the end.
std::vector<int64_t> whisper_suppressed(std::span<const std::string> texts, const WhisperControls& controls);
std::vector<int64_t> whisper_suppressed_at_begin(std::span<const std::string> texts, const WhisperControls& controls);

}  // namespace consonant
