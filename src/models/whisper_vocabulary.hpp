// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/model_file.hpp"

namespace consonant {

// Facts of a Whisper checkpoint that its decoding rules need (Radford et al. 2022). The ids of control tokens follow
// each other: end, start, languages, translate, transcribe, start of LM, previous, no speech, no timestamps, 0.00 s.
// English-only checkpoints have the tokens of other languages too, but were never trained on them.
struct WhisperVocabulary {
  int64_t size = 0;  // of the vocabulary, timestamps included
  bool multilingual = false;
  int32_t end = -1, start = -1, first_language = -1, translate = -1, transcribe = -1, start_of_lm = -1, previous = -1,
          no_speech = -1, no_timestamps = -1;
  int32_t first_timestamp = -1;            // "<|0.00|>"; those that follow are 0.02 s apart
  std::vector<std::string> languages;      // codes, in the order of their ids; "en" alone if not multilingual
  std::vector<int32_t> suppress;           // never written
  std::vector<int32_t> suppress_at_begin;  // not as the first token
  int64_t text_positions = 0;              // of the decoder: 448
  int64_t audio_positions = 0;             // of the encoder's output, 0.02 s each: 1500
};

// The control ids that a vocabulary of `size` tokens has; without lists and positions. Bad input for sizes that no
// checkpoint has.
WhisperVocabulary whisper_vocabulary(int64_t size);

// From the metadata of a file whose architecture is "whisper". Of one without a tokenizer only the end, the start and
// the lists are known; the other ids are -1.
WhisperVocabulary whisper_vocabulary(const Meta& meta);

}  // namespace consonant
