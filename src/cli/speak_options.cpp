// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <random>

#include "base/error.hpp"
#include "cli/files.hpp"
#include "cli/speak.hpp"

namespace consonant {
namespace {

void check_range(bool good, const char* option, double value, const char* wanted) {
  if (!good) bad_usage("{} {}: has to be {}", option, value, wanted);
}

}  // namespace

void SpeakFlags::add(CLI::App& app) {
  CLI::Option* given = app.add_option("-t,--text", text, "What to say");
  app.add_option("-f,--file", file, "What to say, from a file; - for standard input")
      ->type_name("FILE")
      ->excludes(given);
  app.add_option("-o,--output", out, "OUT.wav, .flac or .pcm (raw 16-bit samples), or - for standard output")
      ->type_name("FILE")
      ->required();
  app.add_option("--format", format, "wav, flac or pcm; default: by the name of -o, and wav for -")
      ->check(CLI::IsMember({"wav", "flac", "pcm"}));
  model.add(app);
  app.add_option("--codec", codec, "The codec's GGUF file or folder; default: what lies with the model")
      ->type_name("PATH");
  app.add_option("--speaker", speaker, "One of the model's own speakers; default: its first")->type_name("NAME");
  app.add_option("--voice", voice, "A recording of a voice to clone, 3 to 15 s")->type_name("REF.wav");
  app.add_option("--voice-text", voice_text, "What is said in it, word for word; without it the voice alone is taken");
  app.add_flag("--i-have-rights", has_rights,
               "The voice is yours, or whoever it belongs to agrees to its being cloned; --voice needs it");
  app.add_option("--instruct", instruction, "How to speak; or what the voice is like, for models that design voices");
  app.add_option("-l,--language", language, "A language that the model knows, or auto")->capture_default_str();
  const std::string group = "Sampling";
  app.add_option("--temp", temperature, "Temperature; 0: greedy, for comparisons; default: the model's, mostly 0.9")
      ->group(group);
  app.add_option("--top-k", top_k, "Only the K likeliest codes; 0: off; default: the model's, mostly 50")->group(group);
  app.add_option("--top-p", top_p, "Only the likeliest codes that together reach P; 1: off; default: the model's")
      ->group(group);
  app.add_option("--repeat-penalty", repeat_penalty,
                 "Divides the logits of codes that came before; default: the model's")
      ->group(group);
  app.add_option("--seed", seed, "Seed of the draws; default: a new one each time, which is reported")->group(group);
  app.add_option("--max-frames", max_frames,
                 "Frames (80 ms) of a sentence at most; default: 12 a character, 240 at least. Reaching it is exit 5")
      ->type_name("N")
      ->check(whole_number(1, int64_t(1) << 30));
  app.add_option("--retries", retries,
                 "Further tries of a sentence that reached its bound, each with the next seed; default: 2, and none\n"
                 "with --temp 0 or --stream")
      ->type_name("N")
      ->check(whole_number(0, 1000));
  app.add_flag("--stream", stream, "Write sound as it comes");
  app.add_option("--batch", batch, "Sentences at once, unless they stream")
      ->type_name("N")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--codes", codes, "Write the codes too: s00.codes [frames, 16], s01.codes, ... one a sentence")
      ->type_name("OUT.safetensors");
  app.add_option("--deadline", deadline, "Stop after so many seconds, loading included (exit 1)")->type_name("SECONDS");
  app.add_flag("--json", json, "One JSON document about the sentences on standard output");
}

std::string SpeakFlags::kind() const {
  if (format) return *format;
  if (out == "-") return "wav";
  std::string extension = std::filesystem::path(out).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  if (extension == ".wav" || extension == ".flac" || extension == ".pcm") return extension.substr(1);
  bad_usage("-o {}: its name doesn't end in .wav, .flac or .pcm; say what it is with --format", out);
}

void SpeakFlags::check() const {
  if (!text && !file) bad_usage("speak: a text is needed: -t TEXT or -f FILE");
  if (voice && !has_rights)
    bad_usage(
        "--voice: cloning a voice needs the right to. If it is your own, or its owner agrees, say so: --i-have-rights");
  if (!voice && voice_text) bad_usage("--voice-text: says what the recording --voice holds, and there is none");
  if (!voice && has_rights) bad_usage("--i-have-rights: is about a recording --voice, and there is none");
  if (voice && voice_text && voice_text->find_first_not_of(" \t\r\n") == std::string::npos)
    bad_input("--voice-text is empty: leave it out to take the voice alone");
  if (json && out == "-") bad_usage("--json and -o -: standard output can't hold both");
  if (temperature)
    check_range(*temperature >= 0 && std::isfinite(*temperature), "--temp", *temperature, "0 or greater");
  if (top_k) check_range(*top_k >= 0, "--top-k", *top_k, "0 (off) or greater");
  if (top_p) check_range(*top_p > 0 && *top_p <= 1, "--top-p", *top_p, "above 0 and at most 1 (off)");
  if (repeat_penalty)
    check_range(*repeat_penalty > 0 && std::isfinite(*repeat_penalty), "--repeat-penalty", *repeat_penalty,
                "above 0 (1: off)");
  if (deadline) check_range(*deadline > 0 && std::isfinite(*deadline), "--deadline", *deadline, "above 0");
  if (retries && *retries > 0 && stream)
    bad_usage("--retries {} and --stream: what was written can't be taken back for another try", *retries);
  if (retries && *retries > 0 && temperature && *temperature == 0)
    bad_usage("--retries {} and --temp 0: a greedy try is the same each time", *retries);
  if (kind() == "flac" && stream) bad_usage("--stream: a FLAC file is written when it is whole; choose wav or pcm");
}

SpeakOptions SpeakFlags::options() const {
  SpeakOptions o;
  if (text) {
    require_utf8(*text, "-t");
    o.text = *text;
  } else {
    o.text = *file == "-" ? read_text("/dev/stdin") : read_text(*file);
  }
  for (const auto& [option, given] : {std::pair{"--voice-text", &voice_text}, std::pair{"--instruct", &instruction}})
    if (*given) require_utf8(**given, option);
  o.language = language;
  o.speaker = speaker.value_or("");
  o.instruction = instruction.value_or("");
  o.sampling.temperature = temperature;
  o.sampling.top_k = top_k;
  o.sampling.top_p = top_p;
  o.sampling.repeat_penalty = repeat_penalty;
  o.sampling.seed = seed ? *seed : std::random_device{}();
  o.max_frames = max_frames.value_or(-1);
  o.retries = retries.value_or(2);
  o.stream = stream;
  o.batch = batch;
  return o;
}

}  // namespace consonant
