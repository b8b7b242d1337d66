// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "consonant/engine.hpp"

namespace consonant {

// Sound as the models take it: mono, 16,000 samples a second, in -1 ... 1, read once from front to back. Files of any
// rate, channel count and sample type are converted while they are read, so that an hour costs no more memory than a
// second.
class AudioInput {
 public:
  static constexpr int64_t rate = 16000;
  virtual ~AudioInput() = default;

  // Fills `to` from the front and returns how many samples came: fewer than asked for only at the end. Samples that
  // aren't finite come as 0. Throws bad input for a fault in the middle of a file that can't be read past.
  virtual int64_t read(std::span<float> to) = 0;

  // Samples in all, as far as the header says; -1 if it doesn't (streams).
  virtual int64_t length() const = 0;

  // What was repaired or left out so far ("the file ends after 1.9 s of 3.0 s"), one sentence each; for the user.
  virtual const std::vector<std::string>& warnings() const = 0;

  virtual std::string name() const = 0;  // for messages: the path, or "standard input"
};

struct AudioOptions {
  double offset = 0;     // seconds to skip
  double duration = -1;  // seconds to read at most; -1: all
};

// Opens a file that libsndfile reads (WAV and its kin, FLAC, Ogg Vorbis and Opus, MP3), others through an `ffmpeg`
// executable if there is one on the PATH. Bad input, with the path and the fault, for the rest.
std::unique_ptr<AudioInput> open_audio(const std::string& path, const AudioOptions& options = {});

// The same from a file descriptor, which stays the caller's: `pcm` is empty for a whole file (as in a pipe), or says
// what raw samples it holds, as "RATE:CHANNELS:s16" or "RATE:CHANNELS:f32", little-endian and interleaved.
std::unique_ptr<AudioInput> open_audio_stream(int descriptor, const std::string& pcm, const AudioOptions& options = {});

// The default microphone, until `stop()` is called from another thread or a signal handler. Exit code 4 if this program
// was built without PortAudio or there is no input device.
class Microphone : public AudioInput {
 public:
  virtual void stop() noexcept = 0;
};
std::unique_ptr<Microphone> open_microphone();

// Samples that the caller holds already.
std::unique_ptr<AudioInput> audio_of(std::vector<float> samples, std::string name = "samples");

enum class SpeechTask { transcribe, translate };

struct TranscribeOptions {
  std::string language = "auto";  // ISO 639-1 code or English name; "auto": detected on the first 30 s of speech
  SpeechTask task = SpeechTask::transcribe;
  std::string prompt;       // text that might have come before: names and spellings to be kept
  int beam = 5;             // 1: greedy
  int best_of = 5;          // candidates when sampling
  bool fallback = true;     // repeated or improbable text is decoded again at higher temperatures
  bool context = true;      // a window's text is given to the next one; without it windows don't depend on each other
  int batch = 1;            // windows decoded together, if `context` is off
  bool timestamps = true;   // let the model write segment times; off: one segment a window
  bool word_times = false;  // times and probabilities of words
  bool vad = false;         // leave out what isn't speech, before it reaches the model
  std::string vad_model;    // of `vad`: path of Silero VAD's weights
  double deadline = 0;      // seconds; 0: none
  uint64_t seed = 0;        // of sampling
};

struct SpokenWord {
  std::string word;  // with the space before it, as the model wrote it
  double start = 0, end = 0;
  double probability = 0;
};

// Times are seconds from the start of the recording: 0 <= start <= end <= duration, and segments never overlap or run
// backwards.
struct Segment {
  int64_t id = 0;
  double start = 0, end = 0;
  std::string text;
  std::string speaker;  // empty if unknown
  double avg_logprob = 0, no_speech_prob = 0, compression_ratio = 0, temperature = 0;
  std::vector<int32_t> tokens;
  std::vector<SpokenWord> words;
};

struct TranscribeTimings {
  double load_s = 0, audio_s = 0, wall_s = 0;  // audio_s: of sound read
  double encode_s = 0, decode_s = 0;
  int64_t windows = 0, fallbacks = 0, tokens = 0;
};

struct Transcript {
  std::string file;
  double duration = 0;  // seconds of sound, from where it was read
  std::string language;
  double language_probability = 0;  // 1 if it was given
  std::string text;                 // of all segments
  std::vector<Segment> segments;
  std::vector<std::string> warnings;
  StopReason stop_reason = StopReason::end_token;  // or deadline, cancelled: then there are the segments so far
  TranscribeTimings timings;
};

// Called with each finished segment; returning false cancels.
using OnSegment = std::function<bool(const Segment&)>;
// Called between windows with the seconds done and in all (-1: unknown).
using OnProgress = std::function<void(double done, double all)>;

struct TranscribeCallbacks {
  OnSegment on_segment;
  OnProgress on_progress;
};

// A loaded speech-to-text model.
class Transcriber {
 public:
  // `path`: a Hugging Face folder, a CTranslate2 folder, a whisper.cpp file or a GGUF file of a Whisper model.
  static std::shared_ptr<Transcriber> load(const std::string& path, const EngineOptions& options = {});
  virtual ~Transcriber() = default;

  virtual const ModelInfo& info() const = 0;
  virtual bool multilingual() const = 0;
  virtual std::vector<std::string> languages() const = 0;  // codes that the model knows

  // Reads `audio` to its end. Ends for any input: each window's text is bounded. Wrong usage for an unknown language
  // or options that exclude each other.
  virtual Transcript transcribe(AudioInput& audio, const TranscribeOptions& options = {},
                                const TranscribeCallbacks& callbacks = {}) = 0;

  // The language of the sound's first 30 s, the likeliest first, with probabilities that sum to 1.
  virtual std::vector<std::pair<std::string, double>> detect_language(AudioInput& audio) = 0;

  // Stops a running transcribe, from another thread or a signal handler.
  virtual void cancel() noexcept = 0;
};

// How srt and vtt lay out segments whose words have times; the others are a subtitle each.
struct SubtitleOptions {
  int line = 42;           // characters that a line has at most, if words don't need more
  int lines = 2;           // of a subtitle; longer segments become several
  bool sentences = false;  // every sentence is a subtitle of its own
};

// A transcript as text of one of these kinds. Bad usage for others, and for subtitles of no lines or characters.
//   txt   a segment a line     srt, vtt  subtitles     json  everything (see cli.md)     csv, tsv  start, end, text
std::string format_transcript(const Transcript& transcript, std::string_view format,
                              const SubtitleOptions& subtitles = {});
const std::vector<std::string>& transcript_formats();

}  // namespace consonant
