// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/whisper_vocabulary.hpp"

namespace consonant {

// A part of a window's text between two timestamps.
struct WindowSegment {
  int64_t start = 0, end = 0;       // in timestamps' steps of 0.02 s from the window's start
  std::vector<int32_t> tokens;      // text only
  std::vector<int32_t> all_tokens;  // with its timestamps
};

struct WindowCut {
  std::vector<WindowSegment> segments;
  int64_t advance = 0;  // how much of the window is used up, in the same steps
};

// The seek rule: segments are cut where two timestamps meet. A text that ends in a single timestamp, or has no such
// pair, uses the window up; else what follows the last pair is left for the next window. `length`: of the sound in the
// window, in steps, rounded up; no time is past it. `whole`: the unfinished part is taken too, and the window used up.
WindowCut cut_window(std::span<const int32_t> tokens, const WhisperVocabulary& vocabulary, int64_t length, bool whole);

}  // namespace consonant
