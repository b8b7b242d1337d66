// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "consonant/engine.hpp"

namespace consonant {

// A recording of somebody's voice: mono, at the synthesizer's rate.
struct VoiceSample {
  std::vector<float> samples;
  std::string text;  // what is said in it, word for word; empty: only how the voice sounds is taken
};

// Reads a sound file of any kind, averaged to one channel and resampled to `rate`; `warnings` get what was repaired.
std::vector<float> read_voice(const std::string& path, int64_t rate, std::vector<std::string>* warnings = nullptr);

// A sound file of one channel being written under a temporary name: `commit` gives it its own, and without it nothing
// is left behind. Exit code 1 if a sample isn't finite or the disk is full.
class SpeechFile {
 public:
  virtual ~SpeechFile() = default;
  virtual void write(std::span<const float> samples) = 0;
  virtual void commit() = 0;
};
enum class SpeechFileKind { wav, flac };  // both of 16 bits
std::unique_ptr<SpeechFile> create_speech_file(const std::string& path, SpeechFileKind kind, int64_t rate,
                                               const std::string& comment = {});

// How codes are drawn. What isn't set is as the model's makers have it, or as they trained it: 0.9, 50, 1 and 1.05.
// All but the penalty reach the talker and the code predictor alike; the penalty is the talker's.
struct CodeSampling {
  std::optional<float> temperature;  // 0: greedy, for comparisons: such speech is dull or silent
  std::optional<int> top_k;
  std::optional<float> top_p;
  std::optional<float> repeat_penalty;
  uint64_t seed = 0;
};

struct SpeakOptions {
  std::string text;                  // cut into sentences, each of which is spoken by itself
  std::string language = "auto";     // a name that the model knows
  std::string speaker;               // one of the model's; empty: its first one, if it has any
  std::string instruction;           // how to speak; or, for a model that designs voices, what the voice is like
  std::optional<VoiceSample> voice;  // to be cloned. Whoever asks has the right to.
  CodeSampling sampling;
  int64_t max_frames = -1;  // of a sentence; -1: 240, or 12 for each code point of it if that is more
  int retries = 2;          // further tries, each with the next seed, of a sentence that reached its bound
  bool stream = false;      // samples come while they are made, and what has come can't be tried again
  int batch = 8;            // sentences at once, unless it streams
  double deadline = 0;      // seconds; 0: none
};

struct SpokenSentence {
  std::string text;
  std::vector<int32_t> codes;  // [frame, codebook]
  int64_t frames = 0, bound = 0;
  StopReason stop_reason = StopReason::end_token;
  int tries = 1;
  uint64_t seed = 0;  // of the last try
  // How the end token stood before each of the last frames of a run that came near its bound: 1 is first.
  std::vector<int64_t> end_ranks;
  std::vector<double> end_probabilities;
};

struct SpeakTimings {
  double load_s = 0, wall_s = 0;
  double prompt_s = 0, frames_s = 0, codec_s = 0;
  double first_sound_s = 0;  // from the call to the first samples
};

struct SpeakResult {
  std::vector<SpokenSentence> sentences;
  int64_t codebooks = 0, rate = 0, samples = 0;
  StopReason stop_reason = StopReason::end_token;  // the first that isn't this one, of all sentences
  std::vector<std::string> warnings;
  SpeakTimings timings;
};

struct SpeakCallbacks {
  // Samples at `rate`, from the first to the last; returning false cancels.
  std::function<bool(std::span<const float> samples)> on_samples;
  // After each frame: sentences that are done, of how many, and frames and their seconds so far.
  std::function<void(size_t done, size_t all, int64_t frames, double seconds)> on_progress;
  // A try that reached its bound and is made again.
  std::function<void(const SpokenSentence& failed, int tries_left)> on_retry;
};

// A loaded text-to-speech model and its codec.
class Synthesizer {
 public:
  // `path`: a Hugging Face folder or a GGUF file of a Qwen3-TTS model. `codec`: its codec's GGUF file or folder; empty:
  // the folder's own, or what lies beside the file.
  static std::shared_ptr<Synthesizer> load(const std::string& path, const std::string& codec,
                                           const EngineOptions& options = {});
  virtual ~Synthesizer() = default;

  virtual const ModelInfo& info() const = 0;
  virtual int64_t rate() const = 0;                       // samples a second
  virtual std::vector<std::string> speakers() const = 0;  // that it has learnt
  virtual std::vector<std::string> languages() const = 0;
  virtual bool clones() const = 0;   // takes a recording
  virtual bool designs() const = 0;  // takes a description of the voice

  // Ends for any text: each sentence's frames are bounded. Bad input for a text with nothing to say, for names that the
  // model doesn't know, and for recordings that can't be cloned.
  virtual SpeakResult speak(const SpeakOptions& options, const SpeakCallbacks& callbacks = {}) = 0;

  // Stops a running speak, from another thread or a signal handler.
  virtual void cancel() noexcept = 0;
};

}  // namespace consonant
