// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tasks/repetition.hpp"
#include "tasks/segment_rule.hpp"
#include "tasks/sound_levels.hpp"
#include "tasks/sound_window.hpp"
#include "tasks/vad.hpp"
#include "tasks/whisper_transcribe.hpp"
#include "tasks/whisper_window.hpp"

namespace consonant {

// The windows of one recording, one after the other: the state of `transcribe_speech`.
class SpeechRun {
 public:
  SpeechRun(const WhisperParts& parts, AudioSource& source, const SpeechOptions& options,
            const SpeechCallbacks& callbacks);

  TimedTranscript run();

  // The first window that isn't silent; languages in the vocabulary's order, empty if all is silence.
  std::vector<double> languages();

 private:
  // A window of sound in the model.
  struct Piece {
    int64_t at = 0, length = 0;  // samples
    int64_t quiet_before = 0;    // frames of silence that were passed over on the way to it
    SoundLevels levels;
    std::vector<float> samples;  // kept where a rest may have to be decoded again
    int window = -1;
    WindowModel* model = nullptr;

    Piece() = default;
    Piece(Piece&& other) noexcept { *this = std::move(other); }
    Piece& operator=(Piece&& other) noexcept;
    ~Piece() { forget(); }
    void forget();
  };

  // A word, its tokens in the text of its window, [first, last).
  struct Word {
    TimedWord timed;
    size_t first, last;
  };
  // A segment to be, its text tokens in the text of its window, and the times that it must keep within.
  struct Part {
    TimedSegment segment;
    size_t first, last;
    double low = 0, high = std::numeric_limits<double>::infinity();
  };

  bool go_on();
  bool next_sound(int64_t& at, Piece& piece);
  void encode(Piece& piece, std::span<const float> samples);
  void know_language(const Piece& piece);
  void set_language();
  std::optional<std::vector<WindowText>> decode(std::span<const WindowRequest> requests);
  WindowRequest request(const Piece& piece, std::span<const int32_t> context) const;

  void run_with_context();
  void run_in_pieces();
  bool take_piece(Piece& piece, WindowText text);
  std::optional<WindowText> decode_one(const Piece& piece);

  WindowCut cut(const Piece& piece, const WindowText& text);
  bool no_speech(const Piece& piece, const WindowText& text) const;
  bool drops(const Piece& piece, const WindowText& text) const;
  bool unsure(const Piece& piece, const WindowText& text) const;
  bool repeats(const WindowText& text) const;
  bool leaves_out(const Piece& piece, const WindowText& text) const;
  void accept(const Piece& piece, const WindowText& text, const WindowCut& cut);
  std::vector<TimedSegment> timed(const Piece& piece, const WindowText& text, const WindowCut& cut);
  std::vector<Word> words_of(const Piece& piece, const WindowCut& cut);
  bool spans_cut(const TimedSegment& segment) const;
  std::vector<Part> split_at_cuts(std::vector<Part> parts, std::span<const Word> words) const;
  TimedSegment in_recording(TimedSegment segment) const;
  double recording_time(int64_t at) const;
  void trim(const Piece& piece, double& start, double& end) const;
  void emit(TimedSegment segment, double limit);
  void remember(const WindowText& text, const WindowCut& cut);
  void progress(int64_t at);
  std::string text_of(std::span<const int32_t> tokens) const;

  const WhisperParts& parts_;
  AudioSource& source_;
  const SpeechOptions& options_;
  const SpeechCallbacks& callbacks_;
  WindowDecoder decoder_;
  std::optional<SpeechOnlySource> speech_;  // what the windows see, and all times but the result's are of
  SoundWindow sound_;
  WindowSettings settings_;
  TimedTranscript result_;

  std::vector<int32_t> initial_, context_;  // text tokens: of the caller's prompt, of the text so far
  Repetition repetition_;
  float peak_;              // of the features
  double loudest_ = -1000;  // frame so far, in dB
  double last_end_ = 0;     // of the segments so far, in seconds
  bool language_known_ = false, slow_ = false, shortened_ = false;
};

}  // namespace consonant
