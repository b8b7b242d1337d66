// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "decode/codebooks.hpp"
#include "models/qwen3_tts_vocabulary.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// Where a prompt's voice comes from.
enum class PromptVoice : uint8_t {
  none,     // an instruction describes it
  speaker,  // one that the model has learnt
  vector    // a speaker encoder's, of a recording
};

// What is to be said and how, as ids.
struct SpeechRequest {
  std::span<const int32_t> text;             // at least one
  std::span<const int32_t> instruction;      // empty: none
  std::span<const int32_t> reference_text;   // what the recording says, and
  std::span<const int32_t> reference_codes;  // its frames [frame, groups]; both empty: the voice alone is taken
  int32_t language = -1;                     // -1: the text tells
  PromptVoice voice = PromptVoice::none;
  int32_t speaker = -1;
  // The text is read while it is spoken, a token a frame, instead of all before; as the checkpoint was trained for
  // cloned voices.
  bool streaming_text = false;
};

// A prompt's positions, and what is read in the frames after it: one text id a frame, then the last one for good.
struct SpeechPrompt {
  FrameRows rows;
  std::vector<int32_t> trailing;
};

// The layout of Qwen3-TTS: instruction, role, tags of the codec, then text and reference by the mode. Each position is
// the sum of a text token and, but for the instruction's and the role's, of something heard.
SpeechPrompt speech_prompt(const TtsVocabulary& vocabulary, const Tokenizer& tokenizer, const SpeechRequest& request);

// The ids of a text as templates have it: white space at its ends left out, names of special tokens plain text. Bad
// input for a text with nothing left.
std::vector<int32_t> speech_text(const Tokenizer& tokenizer, std::string_view text);

// The id for a language by name, "auto" (or nothing) giving -1; `speaker`, null for none, may speak a dialect of
// Chinese. Bad input, with those known, for others.
int32_t speech_language(const TtsVocabulary& vocabulary, std::string_view name, const TtsVocabulary::Speaker* speaker);

// The speaker of that name; bad input, with those known, if there is none.
const TtsVocabulary::Speaker& speech_speaker(const TtsVocabulary& vocabulary, std::string_view name);

}  // namespace consonant
