// SPDX-License-Identifier: Apache-2.0
#include "cli/speak.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/models.hpp"
#include "cli/progress.hpp"
#include "cli/sound_output.hpp"
#include "engine/version.hpp"
#include "formats/safetensors.hpp"

namespace consonant {
namespace {

std::string plural(int64_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

// How a sentence missed its end: the rank and the probability of the end token show whether it ever came near.
std::string missed(const SpokenSentence& s) {
  std::string text = fmt::format("{} of {} frames without an end ({})", s.frames, s.bound, name(s.stop_reason));
  if (s.end_ranks.empty()) return text;
  text += "; the end token before the last ones: ";
  for (size_t i = 0; i < s.end_ranks.size(); ++i)
    text += fmt::format("{}rank {} ({:.2g})", i == 0 ? "" : ", ", s.end_ranks[i], s.end_probabilities[i]);
  return text;
}

std::string shortened(const std::string& text) {
  constexpr size_t most = 60;
  if (text.size() <= most) return text;
  size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

void write_codes(const std::string& path, const SpeakResult& result) {
  std::vector<NamedTensor> tensors;
  for (size_t i = 0; i < result.sentences.size(); ++i) {
    const SpokenSentence& s = result.sentences[i];
    HostTensor codes = HostTensor::allocate(DType::i32, {s.frames, result.codebooks});
    std::copy(s.codes.begin(), s.codes.end(), reinterpret_cast<int32_t*>(codes.mutable_bytes().data()));
    tensors.push_back({fmt::format("s{:02}.codes", i), std::move(codes)});
  }
  write_safetensors(path, tensors);
}

nlohmann::json to_json(const SpeakResult& r, const SpeakOptions& options, const ModelInfo& info) {
  nlohmann::json sentences = nlohmann::json::array();
  for (const SpokenSentence& s : r.sentences)
    sentences.push_back({{"text", s.text},
                         {"frames", s.frames},
                         {"bound", s.bound},
                         {"stop_reason", std::string(name(s.stop_reason))},
                         {"tries", s.tries},
                         {"seed", s.seed},
                         {"end_ranks", s.end_ranks},
                         {"end_probabilities", s.end_probabilities}});
  const SpeakTimings& t = r.timings;
  const double audio = static_cast<double>(r.samples) / static_cast<double>(r.rate);
  return {{"model", info.name},
          {"device", info.device},
          {"seed", options.sampling.seed},
          {"rate", r.rate},
          {"samples", r.samples},
          {"audio_s", audio},
          {"wall_s", t.wall_s},
          {"rtf", audio > 0 ? t.wall_s / audio : 0},
          {"load_s", t.load_s},
          {"prompt_s", t.prompt_s},
          {"frames_s", t.frames_s},
          {"codec_s", t.codec_s},
          {"first_sound_s", t.first_sound_s},
          {"stop_reason", std::string(name(r.stop_reason))},
          {"sentences", sentences},
          {"warnings", r.warnings}};
}

int report(const SpeakFlags& flags, const SpeakResult& r) {
  for (const std::string& warning : r.warnings) log_warning("{}", warning);
  int64_t frames = 0;
  for (size_t i = 0; i < r.sentences.size(); ++i) {
    const SpokenSentence& s = r.sentences[i];
    frames += s.frames;
    if (exit_code(s.stop_reason) == int(Exit::bound))
      log_line(fmt::format("error: sentence {} (\"{}\"): {}{}", i + 1, shortened(s.text), missed(s),
                           s.tries > 1 ? fmt::format(", in each of {} tries", s.tries) : ""));
  }
  const double audio = static_cast<double>(r.samples) / static_cast<double>(r.rate);
  const std::string where = flags.out == "-" ? "standard output" : flags.out;
  if (log_level() >= LogLevel::normal)
    log_line(fmt::format("{}: {}, {}, {:.2f} s of sound in {:.2f} s{}", where,
                         plural(std::ssize(r.sentences), "sentence"), plural(frames, "frame"), audio, r.timings.wall_s,
                         r.stop_reason == StopReason::end_token ? "" : fmt::format(" ({})", name(r.stop_reason))));
  if (r.stop_reason == StopReason::deadline) log_line("error: the deadline passed; what there is was written");
  return exit_code(r.stop_reason);
}

int speak(const SpeakFlags& flags, World& world) {
  flags.check();
  SpeakOptions options = flags.options();
  flags.model.check();
  const std::string codec = flags.codec.empty() ? "" : resolve_model(flags.codec);
  const auto synthesizer = world.synthesis.load(resolve_model(flags.model.path), codec, flags.model.engine);
  if (flags.voice) {
    std::vector<std::string> warnings;
    options.voice = VoiceSample{world.synthesis.read_voice(*flags.voice, synthesizer->rate(), &warnings),
                                flags.voice_text.value_or("")};
    for (const std::string& warning : warnings) log_warning("{}", warning);
  }
  if (flags.deadline) options.deadline = deadline_left(world, *flags.deadline);
  const ModelInfo& info = synthesizer->info();
  const std::string comment = fmt::format("Synthetic speech by consonant {}, model {}, seed {}", version,
                                          info.name.empty() ? info.architecture : info.name, options.sampling.seed);
  const auto sound = open_sound({flags.out, flags.kind(), synthesizer->rate(), comment, flags.stream}, world.out);
  log_verbose("seed {}", options.sampling.seed);

  Progress progress;
  std::exception_ptr failure;  // of a write: the model must not see it, it only stops
  SpeakCallbacks callbacks;
  callbacks.on_samples = [&](std::span<const float> samples) {
    try {
      sound->write(samples);
      return true;
    } catch (...) {
      failure = std::current_exception();
      return false;
    }
  };
  callbacks.on_progress = [&](size_t done, size_t all, int64_t frames, double seconds) {
    progress.show(fmt::format("{} of {}  {}  {}", done, plural(static_cast<int64_t>(all), "sentence"),
                              plural(frames, "frame"), clock_text(seconds)));
  };
  callbacks.on_retry = [&](const SpokenSentence& failed, int left) {
    progress.clear();
    log_warning("\"{}\": {}; once more with seed {} (tries left: {})", shortened(failed.text), missed(failed),
                failed.seed + 1, left);
  };
  SpeakResult result;
  {
    const Interrupts::Cancels cancels(*synthesizer);
    result = synthesizer->speak(options, callbacks);
  }
  progress.clear();
  if (failure) std::rethrow_exception(failure);
  sound->finish();
  if (flags.codes) write_codes(*flags.codes, result);
  if (flags.json) world.out.line(to_json(result, options, info).dump());
  return report(flags, result);
}

}  // namespace

Action add_speak(CLI::App& program) {
  CLI::App& app = add_command(program, "speak", "Text to speech",
                              "consonant speak -m qwen3-tts.gguf -t \"Good morning.\" --speaker vivian -o morning.wav");
  auto flags = std::make_shared<SpeakFlags>();
  flags->add(app);
  return [flags](World& world) { return speak(*flags, world); };
}

}  // namespace consonant
