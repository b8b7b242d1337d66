// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "cli/models.hpp"
#include "cli/transcribe.hpp"

namespace consonant {
namespace {

constexpr const char* vad_name = "silero-vad";

void check_seconds(const char* option, double seconds, bool zero) {
  if (!std::isfinite(seconds) || seconds < 0 || (seconds == 0 && !zero))
    bad_usage("{} {}: has to be {} seconds, a finite number", option, seconds, zero ? "0 or more" : "more than 0");
}

// A recording of nothing.
class NoSound final : public AudioInput {
 public:
  int64_t read(std::span<float>) override { return 0; }
  int64_t length() const override { return 0; }
  const std::vector<std::string>& warnings() const override { return none_; }
  std::string name() const override { return ""; }

 private:
  const std::vector<std::string> none_;
};

// A language that there isn't and a --vad-model that is no such thing are faults of the call: said once, before any
// recording is read, rather than of each recording.
void try_options(Transcriber& transcriber, const TranscribeOptions& options) {
  NoSound nothing;
  transcriber.transcribe(nothing, options, {});
}

}  // namespace

void TranscribeFlags::add(CLI::App& app) {
  app.add_option("FILE", inputs, "Recordings, folders of them, or - for standard input");
  app.add_option("--pcm", pcm, "Standard input is raw samples: RATE:CHANNELS:s16 or RATE:CHANNELS:f32");
  app.add_option("-l,--language", language, "What is spoken: a code such as en, a name, or auto")
      ->capture_default_str();
  app.add_option("--task", task, "transcribe, or translate: into English")
      ->check(CLI::IsMember({"transcribe", "translate"}))
      ->capture_default_str();
  add_repeatable(app, "--format", formats, "txt (default), srt, vtt, json, csv or tsv; may be repeated, or a list a,b");
  app.add_option("-o,--output", out,
                 "File, or folder if it is one, ends in '/', or several results are to be expected; default: stdout");
  app.add_flag("--recursive", recursive, "The folders in a folder too; -o mirrors them");
  app.add_flag("--force", force,
               "Replace results that are in the folder of -o already; default: leave them, but those of -");
  app.add_flag("--word-times", word_times,
               "Times and probabilities of words: in json, and where srt and vtt may part a line");
  app.add_flag("--split", split, "srt, vtt: every sentence is a subtitle of its own");
  app.add_option("--max-line", max_line, "srt, vtt: characters of a line; longer ones are broken between words (42)")
      ->check(whole_number(1, 10000));
  app.add_option("--max-lines", max_lines, "srt, vtt: lines of a subtitle; longer segments become several (2)")
      ->check(whole_number(1, 100));
  app.add_option("--prompt", prompt, "Text that might have come before: names and spellings to keep");
  app.add_option("--beam", beam, "Texts that are followed at the same time; 1: greedy")
      ->check(whole_number(1, 64))
      ->capture_default_str();
  app.add_option("--temp-fallback", fallback,
                 "on, off: decode repeated or improbable text again, at higher temperatures")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_flag("--no-context", no_context, "Don't give a window's text to the next one");
  app.add_option("--batch", batch, "Windows decoded together; needs --no-context")
      ->check(whole_number(1, 256))
      ->capture_default_str();
  app.add_flag("--vad", vad, "Leave out what isn't speech before it reaches the model");
  app.add_option("--vad-model", vad_model, "Silero VAD's weights; default: the pulled silero-vad");
  app.add_option("--offset", offset, "Begin so many seconds into the recording")->capture_default_str();
  app.add_option("--duration", duration, "Read so many seconds at most");
  app.add_flag("--live", live,
               "From the microphone, or raw samples of standard input with --pcm, until Ctrl-C, which ends it well");
  app.add_flag("--json", json, "As --format json: one document a line on stdout");
  app.add_option("--deadline", deadline, "Stop after so many seconds, loading included (exit 1)");
  app.add_option("--seed", seed, "Seed of the draws of --temp-fallback")
      ->check(whole_number(0, INT64_MAX))
      ->capture_default_str();
  const std::string later = "Not in this version";
  app.add_flag("--diarize", diarize, later)->group("");
  app.add_option("--encoder", encoder, later)->group("");
  app.add_option("--look-ahead", look_ahead, later)->group("");
  model.add(app);
}

void TranscribeFlags::check() const {
  if (diarize) bad_usage("--diarize: this version doesn't tell speakers apart");
  if (encoder) bad_usage("--encoder: this version runs no model whose encoder is a file of its own");
  if (look_ahead) bad_usage("--look-ahead: this version runs no streaming model; Whisper reads whole windows");
  model.check();
  if (language.empty()) bad_usage("-l '': has to be a language, or auto");
  if (!is_utf8(prompt)) bad_usage("--prompt: isn't UTF-8");
  if (std::find(inputs.begin(), inputs.end(), "") != inputs.end()) bad_usage("'': is no name of a recording");
  check_seconds("--offset", offset, true);
  if (duration) check_seconds("--duration", *duration, false);
  if (deadline) check_seconds("--deadline", *deadline, false);
  if (batch > 1 && !no_context)
    bad_usage("--batch {}: windows that wait for each other's text can't be decoded together; add --no-context", batch);
  if (vad_model && !vad) bad_usage("--vad-model: is for --vad, which isn't given");
  const bool from_stdin = std::find(inputs.begin(), inputs.end(), "-") != inputs.end();
  if (live) {
    if (!inputs.empty() && (inputs.size() > 1 || !from_stdin))
      bad_usage(
          "--live: listens to the microphone, or to standard input (- with --pcm); recordings are read without it");
    if (from_stdin && !pcm) bad_usage("--live -: needs --pcm, which says what standard input holds");
    if (offset > 0) bad_usage("--offset: there is nothing to skip in what is said --live");
    if (batch > 1) bad_usage("--batch: --live has one window at a time");
  } else if (inputs.empty()) {
    bad_usage("transcribe: a recording is needed: FILE, a folder, or - for standard input; or --live");
  }
  if (pcm && !from_stdin && !(live && inputs.empty()))
    bad_usage("--pcm: says what standard input holds, but - isn't among the inputs");
}

TranscribeOptions TranscribeFlags::options() const {
  TranscribeOptions o;
  o.language = language;
  o.task = task == "translate" ? SpeechTask::translate : SpeechTask::transcribe;
  o.prompt = prompt;
  o.beam = beam;
  o.fallback = fallback == "on";
  o.context = !no_context;
  o.batch = batch;
  o.word_times = word_times || lays_out();
  o.vad = vad;
  o.seed = seed;
  if (vad) {
    o.vad_model = resolve_model(vad_model.value_or(vad_name));
    std::error_code error;
    if (!std::filesystem::exists(o.vad_model, error)) bad_input("--vad-model {}: no such file", o.vad_model);
  }
  return o;
}

SubtitleOptions TranscribeFlags::subtitles() const {
  SubtitleOptions o;
  o.line = max_line.value_or(o.line);
  o.lines = max_lines.value_or(o.lines);
  o.sentences = split;
  return o;
}

std::shared_ptr<Transcriber> TranscribeFlags::load(World& world, TranscribeOptions& options) const {
  std::shared_ptr<Transcriber> transcriber = world.speech.load(resolve_model(model.path), model.engine);
  const ModelInfo& info = transcriber->info();
  log_verbose("{} on {}{}, precision {}", info.name.empty() ? info.architecture : info.name, info.device,
              model.engine.device == "auto" ? " (chosen by auto)" : "", info.precision);
  try_options(*transcriber, options);
  if (!transcriber->multilingual()) {
    std::string wanted = options.language;
    for (char& c : wanted)
      if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    if (wanted != "auto" && wanted != "en" && wanted != "english")
      log_warning("-l {}: this model knows English only; going on with en", options.language);
    if (options.task == SpeechTask::translate)
      log_warning("--task translate: this model knows English only and can't translate; going on with transcribe");
    options.language = "en";
    options.task = SpeechTask::transcribe;
  }
  return transcriber;
}

}  // namespace consonant
