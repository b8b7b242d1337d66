// SPDX-License-Identifier: Apache-2.0
#include "engine/speak_engine.hpp"

#include <algorithm>
#include <utility>

#include "audio/read.hpp"
#include "base/checked.hpp"
#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "engine/auto_device.hpp"
#include "engine/model_setup.hpp"
#include "engine/speak_call.hpp"

namespace consonant {

namespace {

constexpr int64_t usual_context = 4096;  // positions: five minutes, far more than a sentence takes
constexpr int most_sentences = 8;        // at once
constexpr std::string_view talker_name = "qwen3tts", codec_name = "qwen3tts_tokenizer";

std::string architecture_of(const ModelFile& file) {
  return std::string(file.meta->string("general.architecture", ""));
}

// Beside a talker's GGUF file: one whose name says that it is a tokenizer, as its makers call the codec.
std::string codec_beside(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) return (path / "speech_tokenizer").string();
  std::vector<std::string> found;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".gguf") && name.find("tokenizer") != name.npos) found.push_back(entry.path().string());
  }
  if (found.empty())
    bad_usage("{}: no codec lies beside it (a file named ...tokenizer....gguf); say where it is: --codec PATH",
              path.string());
  return *std::min_element(found.begin(), found.end());
}

// The speaker encoder is there for cloning, and loaded for that alone.
void warn_of_unused_but_speaker(const ModelFile& file, const Weights& weights) {
  for (const std::string& name : weights.unused())
    if (!name.starts_with("speaker."))
      log_warning("{}: the tensor {} isn't used: is this another model than its architecture says?", file.meta->source,
                  name);
}

template <class T>
std::vector<std::string> names_of(const std::vector<T>& all) {
  std::vector<std::string> names;
  for (const T& one : all) names.push_back(one.name);
  return names;
}

}  // namespace

int64_t frame_bound(int64_t code_points) { return std::max<int64_t>(240, 12 * code_points); }

void SpeakEngine::load_codec(const std::string& path, const std::string& codec, const EngineOptions& options) {
  const std::string from = codec.empty() ? codec_beside(path) : codec;
  EngineOptions plain = options;
  plain.override_kv.clear();
  codec_file_ = open_for(from, plain);
  if (const std::string found = architecture_of(codec_file_); found != codec_name)
    bad_input("{}: the architecture '{}' is no codec; {} is", from, sanitize_utf8(found), codec_name);
  codec_weights_.emplace(codec_file_);
  codec_.emplace(codec_file_, *codec_weights_);
  const TtsVocabulary& v = vocabulary();
  if (codec_->codebooks != v.groups || codec_->codebook_size != v.book)
    bad_input("{}: has {} codebooks of {} codes, but the talker speaks {} of {}", from, codec_->codebooks,
              codec_->codebook_size, v.groups, v.book);
}

SpeakEngine::SpeakEngine(const std::string& path, const std::string& codec, const EngineOptions& options,
                         const Target& target, std::vector<std::string> passed_over)
    : file_(open_for(path, options)) {
  const auto start = Clock::now();
  const std::string found = architecture_of(file_);
  if (found == codec_name) bad_input("{}: is a codec; -m wants the talker, and --codec this file", path);
  if (found != talker_name)
    bad_input("{}: the architecture '{}' doesn't speak; {} does", path, sanitize_utf8(found), talker_name);
  weights_.emplace(file_);
  model_.emplace(file_, *weights_);
  warn_of_unused_but_speaker(file_, *weights_);
  if (!file_.meta->has("tokenizer.ggml.merges"))
    bad_input("{}: has no merges (tokenizer.ggml.merges), without which text can't be made tokens", path);
  tokenizer_ = Tokenizer::load(*file_.meta);
  check_overrides(file_);
  load_codec(path, codec, options);

  RunnerOptions runner = runner_options_of(options, target);
  if (runner.context == 0) runner.context = std::min(usual_context, model_->context);
  const auto sources = sources_of(file_, *weights_), codec_sources = sources_of(codec_file_, *codec_weights_);
  runner.sequences = most_sentences;
  const auto needed = [&] {
    return checked_add(TtsRunner::needs(*model_, sources, runner).bytes(),
                       WeightStore::planned(codec_sources, target.kind).bytes());
  };
  const int64_t free = available_memory(target);
  if (free >= 0 && needed() > free) runner.sequences = 1;
  check_memory(file_, target, needed(), "try a smaller model, a more compact quantisation or a shorter --context");
  runner_ = std::make_unique<TtsRunner>(*model_, sources, runner);
  RunnerOptions codec_options = runner;
  codec_options.sequences = 1, codec_options.on_weights = {};
  decoder_ = std::make_unique<CodecDecoderRunner>(*codec_, codec_sources, codec_options);
  voices_ = std::make_unique<VoiceReader>(file_, codec_file_, codec_options);

  info_ = describe_model(path, file_, *weights_, options, runner, runner_->weight_bytes() + decoder_->weight_bytes());
  info_.layers = model_->layers, info_.width = model_->width, info_.vocabulary = vocabulary().codes;
  info_.context = runner_->context();
  info_.passed_over = std::move(passed_over);
  load_seconds_ = seconds_since(start);
  log_verbose("{}: {} {}, {} parameters, on {} with {} threads, loaded in {:.0f} ms", path, info_.format,
              info_.architecture, info_.parameters, info_.device, info_.threads, load_seconds_ * 1e3);
}

std::vector<std::string> SpeakEngine::speakers() const { return names_of(vocabulary().speakers); }
std::vector<std::string> SpeakEngine::languages() const { return names_of(vocabulary().languages); }

// Each kind of model takes its own kind of voice; what it can't honour it refuses.
SpeakEngine::Manner SpeakEngine::manner_of(const SpeakOptions& options) {
  const TtsVocabulary& v = vocabulary();
  Manner m;
  const TtsVocabulary::Speaker* speaker = nullptr;
  if (options.voice && !clones())
    bad_usage("a recording to clone: this model has its own voices; one that clones is called base");
  if (!options.speaker.empty() && v.kind != TtsVocabulary::Kind::custom_voice)
    bad_usage("speaker '{}': this model has none", sanitize_utf8(options.speaker));
  if (clones()) {
    if (!options.voice) bad_usage("this model clones voices and has none of its own: it needs a recording (--voice)");
    if (!options.instruction.empty()) bad_usage("an instruction: this model takes its manner from the recording");
    m.request.voice = PromptVoice::vector;
    m.request.streaming_text = true;
    const bool said = options.voice->text.find_first_not_of(" \t\r\n") != std::string::npos;
    m.voice = voices_->read(options.voice->samples, said);
    if (said) m.reference_text = speech_text(*tokenizer_, options.voice->text);
  } else if (designs()) {
    if (options.instruction.empty())
      bad_usage("this model designs voices: it needs a description of the voice (--instruct)");
  } else {
    if (v.speakers.empty()) bad_input("{}: has no speakers (qwen3tts.spk_names)", info_.path);
    speaker = options.speaker.empty() ? &v.speakers[0] : &speech_speaker(v, options.speaker);
    m.request.voice = PromptVoice::speaker;
    m.request.speaker = speaker->id;
    if (!options.instruction.empty() && !model_->follows_instructions())
      bad_usage("an instruction: a model of this size wasn't trained to follow any");
  }
  if (!options.instruction.empty()) m.instruction = speech_text(*tokenizer_, options.instruction);
  m.request.language = speech_language(v, options.language, speaker);
  return m;
}

SpeakResult SpeakEngine::speak(const SpeakOptions& options, const SpeakCallbacks& callbacks) {
  cancelled_ = false;
  bound_waits(runner_->device(), options.deadline);
  if (const size_t bad = find_bad_utf8(options.text); bad != std::string::npos)
    bad_input("the text isn't UTF-8: byte {} can't stand there", bad);
  if (options.max_frames == 0 || options.max_frames < -1) bad_usage("{} frames at most", options.max_frames);
  if (options.retries < 0 || options.batch < 1) bad_usage("{} retries, {} at once", options.retries, options.batch);
  const Clock::time_point start = Clock::now();
  const Manner manner = manner_of(options);
  SpeakCall call(*runner_, *decoder_, *tokenizer_, options, callbacks, &cancelled_, start);
  SpeechRequest request = manner.request;
  request.instruction = manner.instruction, request.reference_text = manner.reference_text;
  request.reference_codes = manner.voice.codes;
  SpeakResult result = call.run(request, manner.voice.vector);
  result.timings.load_s = load_seconds_;
  return result;
}

std::shared_ptr<Synthesizer> Synthesizer::load(const std::string& path, const std::string& codec,
                                               const EngineOptions& options) {
  return load_on(options.device, [&](const Target& target, const std::vector<std::string>& passed_over) {
    return std::make_shared<SpeakEngine>(path, codec, options, target, passed_over);
  });
}

std::vector<float> read_voice(const std::string& path, int64_t rate, std::vector<std::string>* warnings) {
  constexpr size_t piece = 1 << 16;
  constexpr double longest_s = 60;  // what is longer is hardly a sample of a voice, and fills the context
  ReadSettings settings;
  settings.rate = rate;
  const auto source = read_audio(path, settings);
  std::vector<float> samples;
  for (;;) {
    const size_t before = samples.size();
    samples.resize(before + piece);
    const auto n = static_cast<size_t>(source->read(std::span(samples).subspan(before)));
    samples.resize(before + n);
    if (static_cast<double>(samples.size()) > longest_s * static_cast<double>(rate))
      bad_input("{}: is longer than {} s: 3 to 15 s of a voice are best", path, longest_s);
    if (n < piece) break;
  }
  if (warnings) *warnings = source->warnings();
  return samples;
}

}  // namespace consonant
