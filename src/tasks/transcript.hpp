// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "decode/stop.hpp"

namespace consonant {

// The public SpokenWord, Segment and Transcript, field by field.
struct TimedWord {
  std::string word;  // with the space before it, as the model wrote it
  double start = 0, end = 0;
  double probability = 0;
};

struct TimedSegment {
  int64_t id = 0;
  double start = 0, end = 0;
  std::string text;
  std::string speaker;
  double avg_logprob = 0, no_speech_prob = 0, compression_ratio = 0, temperature = 0;
  std::vector<int32_t> tokens;
  std::vector<TimedWord> words;
};

struct TimedTranscript {
  std::string file;
  double duration = 0;
  std::string language;
  double language_probability = 0;
  std::string text;
  std::vector<TimedSegment> segments;
  std::vector<std::string> warnings;
  Stop stop = Stop::end_token;
  struct Timings {
    double load_s = 0, audio_s = 0, wall_s = 0;
    double encode_s = 0, decode_s = 0;
    int64_t windows = 0, fallbacks = 0, tokens = 0;
  } timings;
};

}  // namespace consonant
