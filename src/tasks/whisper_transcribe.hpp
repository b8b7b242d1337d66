// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "audio/audio_source.hpp"
#include "base/clock.hpp"
#include "models/whisper_vocabulary.hpp"
#include "tasks/transcript.hpp"
#include "tasks/voice_model.hpp"
#include "tasks/window_model.hpp"
#include "text/tokenizer.hpp"

namespace consonant {

// The public TranscribeOptions, as far as windows need them.
struct SpeechOptions {
  std::string language = "auto";  // code or English name
  bool translate = false;
  std::string prompt;
  int beam = 5;
  int best_of = 5;
  bool fallback = true;
  bool context = true;
  int batch = 1;
  bool timestamps = true;
  bool word_times = false;
  uint64_t seed = 0;
  VoiceModel* voice = nullptr;  // leaves out what it hears no speech in; times stay the recording's
  Deadline deadline;
  const std::atomic<bool>* cancelled = nullptr;
};

struct SpeechCallbacks {
  std::function<bool(const TimedSegment&)> on_segment;       // false: cancels
  std::function<void(double done, double all)> on_progress;  // seconds; -1: unknown
};

// A Whisper model with its words. All that it refers to must outlive it.
struct WhisperParts {
  WindowModel& model;
  const WhisperVocabulary& vocabulary;
  const Tokenizer& tokenizer;
};

// Transcribes a recording of any length, in the memory of one window (of `batch` windows without context). With context
// each window starts where the last complete segment of the one before ended, and is told the text so far. Without,
// the recording is cut in quiet places into pieces that know nothing of each other, so that `batch` of them can be
// decoded together: the text is the same for any batch.
//
// What isn't speech: windows that are silent, or steady as a hum or a hiss, are not decoded; of those that are, the
// text is dropped where the model doubts that there is speech and its text is improbable, and where it says what it
// said before without being sure. A text that comes again is first decoded anew without the context that may have
// brought it.
//
// With a model of the voice the windows are filled with speech alone. No segment spans what was left out, and without
// any speech the Whisper model isn't run.
//
// What is speech and was left out: loud sound after the text's last timestamp is decoded again from there; a text with
// far too few letters for its loud sound is decoded without context, and if that doesn't help, from the first pause on.
//
// Ends for any input: a window's text is bounded, and of two windows one at least moves on by two seconds.
// Wrong usage for a language that the model doesn't know and for options outside their ranges.
TimedTranscript transcribe_speech(const WhisperParts& parts, AudioSource& source, const SpeechOptions& options,
                                  const SpeechCallbacks& callbacks = {});

// Languages of the first window that isn't silent, the likeliest first; probabilities sum to 1.
std::vector<std::pair<std::string, double>> detect_speech_language(const WhisperParts& parts, AudioSource& source);

}  // namespace consonant
