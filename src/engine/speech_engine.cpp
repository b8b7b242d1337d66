// SPDX-License-Identifier: Apache-2.0
#include "engine/speech_engine.hpp"

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "engine/auto_device.hpp"
#include "engine/model_setup.hpp"
#include "engine/stop_reason.hpp"
#include "formats/sha256.hpp"
#include "tasks/subtitles.hpp"
#include "tasks/whisper_transcribe.hpp"
#include "tasks/whisper_window.hpp"

namespace consonant {

namespace {

// The caller's sound as the tasks read it.
class SourceOfInput final : public AudioSource {
 public:
  explicit SourceOfInput(AudioInput& input) : input_(input) {}
  int64_t read(std::span<float> to) override { return input_.read(to); }
  int64_t length() const override { return input_.length(); }
  const std::vector<std::string>& warnings() const override { return input_.warnings(); }
  std::string name() const override { return input_.name(); }

 private:
  AudioInput& input_;
};

// The public results and those of the tasks have the same fields.
template <class To, class From>
To segment_as(const From& from) {
  To to;
  to.id = from.id;
  to.start = from.start, to.end = from.end;
  to.text = from.text, to.speaker = from.speaker;
  to.avg_logprob = from.avg_logprob, to.no_speech_prob = from.no_speech_prob;
  to.compression_ratio = from.compression_ratio, to.temperature = from.temperature;
  to.tokens = from.tokens;
  for (const auto& w : from.words) to.words.push_back({w.word, w.start, w.end, w.probability});
  return to;
}

// All but why it ended.
template <class To, class Segment, class From>
To transcript_as(const From& from) {
  To to;
  to.file = from.file;
  to.duration = from.duration;
  to.language = from.language, to.language_probability = from.language_probability;
  to.text = from.text;
  for (const auto& s : from.segments) to.segments.push_back(segment_as<Segment>(s));
  to.warnings = from.warnings;
  const auto& t = from.timings;
  to.timings = {t.load_s, t.audio_s, t.wall_s, t.encode_s, t.decode_s, t.windows, t.fallbacks, t.tokens};
  return to;
}

SpeechOptions to_speech(const TranscribeOptions& o) {
  SpeechOptions options;
  options.language = o.language;
  options.translate = o.task == SpeechTask::translate;
  options.prompt = o.prompt;
  options.beam = o.beam;
  options.best_of = o.best_of;
  options.fallback = o.fallback;
  options.context = o.context;
  options.batch = o.batch;
  options.timestamps = o.timestamps;
  options.word_times = o.word_times;
  options.seed = o.seed;
  if (o.deadline > 0) options.deadline = Deadline::after(o.deadline);
  return options;
}

// Sequences that may be open at once: while beams branch, the old ones and the new; and one for word times.
int most_sequences(int width) { return 2 * width + 1; }

}  // namespace

RunnerOptions speech_runner_options(const EngineOptions& options, const Target& target) {
  RunnerOptions runner = runner_options_of(options, target);
  runner.sequences = most_sequences(5);
  return runner;
}

SpeechEngine::SpeechEngine(const std::string& path, const EngineOptions& options, const Target& target,
                           std::vector<std::string> passed_over)
    : file_(open_for(path, options)) {
  const auto start = Clock::now();
  if (options.context != 0)
    bad_usage("a context of {} tokens: a speech model's windows have their own", options.context);
  const std::string_view architecture = file_.meta->string("general.architecture");
  if (architecture != "whisper")
    bad_input("{}: the architecture '{}' doesn't transcribe; whisper does", file_.meta->source, architecture);
  weights_.emplace(file_);
  model_.emplace(file_, *weights_);
  warn_of_unused(file_, *weights_);
  if (!file_.meta->has("tokenizer.ggml.model"))
    bad_input("{}: the model has no tokenizer, without which its tokens are no text", file_.meta->source);
  tokenizer_ = Tokenizer::load(*file_.meta);
  vocabulary_ = whisper_vocabulary(*file_.meta);
  check_overrides(file_);

  const RunnerOptions runner = speech_runner_options(options, target);
  const auto sources = sources_of(file_, *weights_);
  check_memory(file_, runner.device, WhisperRunner::needs(*model_, sources, runner, 1).bytes(),
               "try a smaller model or a more compact quantisation");
  runner_ = std::make_unique<WhisperRunner>(*model_, sources, runner, 1);

  info_ = describe_model(path, file_, *weights_, options, runner, runner_->weight_bytes());
  info_.layers = model_->layers, info_.width = model_->width, info_.vocabulary = model_->vocabulary;
  info_.context = model_->context;
  info_.passed_over = std::move(passed_over);
  load_seconds_ = seconds_since(start);
  log_verbose("{}: {} {}, {} parameters, on {} with {} threads, loaded in {:.0f} ms", path, info_.format,
              info_.architecture, info_.parameters, info_.device, info_.threads, load_seconds_ * 1e3);
}

Transcript SpeechEngine::transcribe(AudioInput& audio, const TranscribeOptions& options,
                                    const TranscribeCallbacks& callbacks) {
  cancelled_ = false;
  bound_waits(runner_->device(), options.deadline);
  SpeechOptions speech = to_speech(options);
  speech.cancelled = &cancelled_;
  const int windows = speech.context ? 1 : std::max(1, speech.batch);
  runner_->make_room(windows * most_sequences(std::max({1, speech.beam, speech.best_of})), windows);
  SpeechCallbacks inner;
  if (callbacks.on_segment)
    inner.on_segment = [&](const TimedSegment& segment) { return callbacks.on_segment(segment_as<Segment>(segment)); };
  inner.on_progress = callbacks.on_progress;
  SourceOfInput source(audio);
  if (options.vad) speech.voice = &voice(options.vad_model);
  const TimedTranscript timed = transcribe_speech({*runner_, vocabulary_, *tokenizer_}, source, speech, inner);
  auto transcript = transcript_as<Transcript, Segment>(timed);
  transcript.stop_reason = to_reason(timed.stop);
  transcript.timings.load_s = load_seconds_;
  return transcript;
}

// Loaded when it is first asked for, and kept. One thread: its steps are shorter than it takes to wake others.
VadRunner& SpeechEngine::voice(const std::string& path) {
  if (path.empty()) bad_usage("to leave out what isn't speech takes the weights of Silero VAD: vad_model is empty");
  if (voice_path_ != path) {
    RunnerOptions options;
    options.device = runner_->device();
    options.threads = 1;
    voice_.reset();
    voice_path_.clear();
    voice_ = std::make_unique<VadEngine>(path, options);
    voice_path_ = path;
  }
  return voice_->runner();
}

std::vector<std::pair<std::string, double>> SpeechEngine::detect_language(AudioInput& audio) {
  SourceOfInput source(audio);
  return detect_speech_language({*runner_, vocabulary_, *tokenizer_}, source);
}

std::string SpeechEngine::sha256() const {
  std::vector<std::filesystem::path> files = file_.files;
  std::sort(files.begin(), files.end());
  return sha256_of_files(files);
}

std::vector<int32_t> SpeechEngine::greedy_tokens(int window, const TranscribeOptions& options) {
  WindowDecoder decoder(*runner_, vocabulary_, *tokenizer_);
  WindowSettings settings{.translate = options.task == SpeechTask::translate,
                          .timestamps = options.timestamps,
                          .beam = 1,
                          .fallback = false};
  if (vocabulary_.multilingual && options.language == "auto") {
    const std::vector<double> likely = decoder.languages(window);
    settings.language = vocabulary_.first_language +
                        static_cast<int32_t>(std::max_element(likely.begin(), likely.end()) - likely.begin());
  } else if (vocabulary_.multilingual) {
    settings.language = language_token(vocabulary_, options.language);
  }
  const std::vector<int32_t> initial = prompt_tokens(*tokenizer_, vocabulary_, options.prompt);
  const WindowRequest request{.window = window, .context = {}, .initial = initial};
  std::vector<int32_t> tokens = decoder.prompt(request, settings);
  const auto texts = decoder.decode({&request, 1}, settings, [] { return true; });
  tokens.insert(tokens.end(), texts->front().tokens.begin(), texts->front().tokens.end());
  return tokens;
}

std::shared_ptr<Transcriber> Transcriber::load(const std::string& path, const EngineOptions& options) {
  return load_on(options.device, [&](const Target& target, const std::vector<std::string>& passed_over) {
    return std::make_shared<SpeechEngine>(path, options, target, passed_over);
  });
}

std::string format_transcript(const Transcript& transcript, std::string_view format, const SubtitleOptions& subtitles) {
  if (subtitles.line < 1 || subtitles.lines < 1)
    bad_usage("subtitles of {} lines of {} characters; wanted 1 or more of each", subtitles.lines, subtitles.line);
  return write_transcript(transcript_as<TimedTranscript, TimedSegment>(transcript), format,
                          {subtitles.line, subtitles.lines, subtitles.sentences});
}

const std::vector<std::string>& transcript_formats() { return transcript_kinds(); }

SpeechEngine& speech_engine(Transcriber& transcriber) {
  auto* speech = dynamic_cast<SpeechEngine*>(&transcriber);
  if (!speech) bad_usage("{} isn't a speech model", transcriber.info().path);
  return *speech;
}

}  // namespace consonant
