// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tasks/transcript.hpp"

namespace consonant {

struct CueOptions {
  int line = 42;           // characters that a line of srt and vtt has at most, if words don't need more
  int lines = 2;           // of one subtitle; longer segments become several, if their words have times
  bool sentences = false;  // every sentence is a subtitle of its own, if words have times
};

// A transcript as text. Bad usage for a kind that isn't in `transcript_kinds`.
//   txt   a segment a line, with its speaker where that is known
//   srt, vtt   subtitles
//   json  everything, as one object
//   csv, tsv   start and end in milliseconds, speaker if any is known, text
//   rttm  a line a segment with a speaker
std::string write_transcript(const TimedTranscript& transcript, std::string_view kind, const CueOptions& options = {});
const std::vector<std::string>& transcript_kinds();

// "01:02:03.456", with `point` before the milliseconds.
std::string clock_time(double seconds, char point);

}  // namespace consonant
