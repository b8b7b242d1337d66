// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "audio/audio_source.hpp"
#include "tasks/voice_model.hpp"

namespace consonant {

// How probabilities become stretches of speech; Silero VAD's rules and defaults. Times in seconds.
struct VadOptions {
  double threshold = 0.5;     // speech begins at this
  double neg_threshold = -1;  // and may end below this; negative: 0.15 below the threshold, 0.01 at least
  double min_speech = 0.25;   // shorter stretches are none
  double min_silence = 0.1;   // a stretch ends when it is followed by this
  double pad = 0.03;          // added on both sides
  double max_speech = std::numeric_limits<double>::infinity();  // longer ones are cut, in their longest silence
  double min_silence_at_max = 0.098;                            // that lasts this at least, else where they are
};

// A stretch of speech: samples [start, end).
struct SpeechPart {
  int64_t start = 0, end = 0;
  bool operator==(const SpeechPart&) const = default;
};

// Finds the stretches while the probabilities come in.
class SpeechSegmenter {
 public:
  SpeechSegmenter(const VadOptions& options, int64_t window);

  void add(float probability);   // of the next window
  void finish(int64_t samples);  // of the recording; the last window may have been filled up with zeros

  // Those that nothing will change any more, in order; each once.
  std::vector<SpeechPart> take() { return std::exchange(done_, {}); }
  // No stretch that is still to come starts before this sample.
  int64_t earliest() const;

 private:
  void close(int64_t end);
  void settle(int64_t next);
  int64_t padded_start(int64_t start) const;

  double threshold_, neg_threshold_, min_speech_, min_silence_, pad_, max_speech_, min_silence_at_max_;  // in samples
  int64_t window_, at_ = 0;            // start of the next window
  std::optional<int64_t> start_;       // of the stretch that we are in
  std::optional<int64_t> quiet_;       // where the silence that it may end in began
  std::vector<SpeechPart> silences_;   // in it, that it may be cut in
  std::optional<SpeechPart> waiting_;  // the last stretch, whose end depends on where the next one starts
  std::vector<SpeechPart> done_;
};

// All stretches of a recording.
std::vector<SpeechPart> find_speech(VoiceModel& model, AudioSource& source, const VadOptions& options = {});

// What windows of a speech model are cut from: pauses stay, and a stretch keeps some room around it. The greatest
// length bounds what has to be held before a stretch is known.
inline VadOptions speech_for_windows() { return {.min_silence = 2, .pad = 0.4, .max_speech = 30}; }

// A recording without what isn't speech, and where its samples were. Holds a stretch or two, however long the
// recording.
class SpeechOnlySource final : public AudioSource {
 public:
  SpeechOnlySource(AudioSource& source, VoiceModel& model, const VadOptions& options = speech_for_windows());

  int64_t read(std::span<float> to) override;
  int64_t length() const override { return -1; }
  const std::vector<std::string>& warnings() const override { return source_.warnings(); }
  std::string name() const override { return source_.name(); }

  int64_t taken() const { return taken_; }  // samples of the recording, so far

  // Seconds of this source as seconds of the recording. Where something was cut out, what starts starts after it and
  // what ends ended before it.
  double start_time(double seconds) const;
  double end_time(double seconds) const;
  // The cuts strictly between two times of this source.
  std::vector<double> cuts(double from, double to) const;
  // The last cut at or before `from` and the first at or after `to`; 0 and infinity where there is none.
  std::pair<double, double> cuts_around(double from, double to) const;
  // Seconds before and after a cut that hold no speech.
  double pad() const { return pad_; }

 private:
  // From `here` on, samples of this source are those of the recording from `there` on.
  struct Piece {
    int64_t here, there;
  };

  void advance();
  const Piece* piece_at(double seconds, bool end) const;

  AudioSource& source_;
  VoiceModel& model_;
  SpeechSegmenter segmenter_;
  double pad_;
  std::deque<SpeechPart> parts_;  // known, and not all given out
  std::vector<float> held_;       // of the recording, from sample first_ on
  int64_t first_ = 0, taken_ = 0, given_ = 0;
  bool ended_ = false;
  std::vector<Piece> pieces_;
};

}  // namespace consonant
