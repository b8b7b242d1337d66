// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/meta.hpp"

namespace consonant {

// The ids of a Qwen3-TTS model that mean more than a piece of text or a sound, as its file has them, checked: those of
// the text side are rows of the text table, those of the codec side rows of the talker's table of codes.
struct TtsVocabulary {
  explicit TtsVocabulary(const Meta& meta);

  struct Language {
    std::string name;
    int32_t id;
  };
  struct Speaker {
    std::string name;
    int32_t id;
    int32_t dialect;  // id of the language that it speaks for Chinese; -1: Chinese itself
  };
  enum class Kind { base, custom_voice, voice_design };

  // Names regardless of case; nullptr: none.
  const Language* language(std::string_view name) const;
  const Speaker* speaker(std::string_view name) const;

  // The last ids of the codec side are no sounds: nothing but the end may be drawn of them.
  static constexpr int64_t reserved = 1024;
  int64_t text = 0, codes = 0;   // rows of the two tables
  int64_t groups = 0, book = 0;  // codebooks, and the codes of each: those of the talker's that aren't reserved
  int32_t text_bos, text_eos, text_pad, turn_start, turn_end;
  int32_t assistant;  // -1 if the file doesn't say: the token "assistant"
  int32_t bos, pad, end, think, no_think, think_bos, think_eos;
  Kind kind = Kind::base;
  std::vector<Language> languages;
  std::vector<Speaker> speakers;

  // What the file's makers draw codes with; for codebook 0 and for the others.
  struct Draws {
    float temperature, top_p;
    int32_t top_k;
  };
  Draws first{}, others{};
  float repeat_penalty = 1;
};

}  // namespace consonant
