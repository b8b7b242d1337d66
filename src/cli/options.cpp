// SPDX-License-Identifier: Apache-2.0
#include "cli/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <random>
#include <string_view>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "cli/models.hpp"
#include "cli/progress.hpp"
#include "engine/device_names.hpp"

namespace consonant {
namespace {

// ID=X with X a number or -inf.
std::pair<int32_t, float> parse_bias(const std::string& text) {
  const size_t equals = text.find('=');
  char *id_end = nullptr, *end = nullptr;
  if (equals != std::string::npos && equals > 0 && equals + 1 < text.size()) {
    const long id = std::strtol(text.c_str(), &id_end, 10);
    const float bias = std::strtof(text.c_str() + equals + 1, &end);
    if (id_end == text.c_str() + equals && *end == '\0' && id >= 0 && id <= INT32_MAX && bias < INFINITY)
      return {int32_t(id), bias};
  }
  bad_usage("--logit-bias {}: wanted is ID=X with a token id and a number, for instance 13=-2.5 or 13=-inf", text);
}

void check_range(bool good, const char* option, double value, const char* wanted) {
  if (!good) bad_usage("{} {}: has to be {}", option, value, wanted);
}

}  // namespace

CLI::Validator whole_number(int64_t low, int64_t high) {
  return CLI::Validator(
      [low, high](const std::string& text) {
        int64_t value = 0;
        const char* end = text.data() + text.size();
        const auto [rest, error] = std::from_chars(text.data(), end, value);
        if (error == std::errc() && rest == end && value >= low && value <= high) return std::string();
        return fmt::format("'{}' has to be a whole number from {} to {}", text, low, high);
      },
      "");
}

void add_logging(CLI::App& app) {
  CLI::Option* verbose = app.add_flag_callback(
      "-v,--verbose", [] { set_log_level(LogLevel::verbose); }, "Say how things go, on stderr");
  CLI::Option* quiet = app.add_flag_callback(
      "-q,--quiet", [] { set_log_level(LogLevel::quiet); }, "Say nothing but errors");
  verbose->excludes(quiet);
}

void ModelOptions::add(CLI::App& app, bool required) {
  CLI::Option* model =
      app.add_option("-m,--model", path, "GGUF file, Hugging Face folder, or the name of a model that was pulled")
          ->type_name("PATH");
  if (required) model->required();
  app.add_option(
         "--device", engine.device,
         "auto, cpu, cuda[:N], hip[:N], reference (naive kernels in double: slow, the yardstick), or emu32, emu64 (an\n"
         "accelerator that the CPU emulates: for tests)")
      ->type_name("DEVICE")
      ->capture_default_str();
  app.add_option("--threads", engine.threads, "CPU threads; default: one a core that this process may use")
      ->type_name("N")
      ->check(whole_number(1, ThreadPool::most));
  app.add_option("--precision", engine.precision, "auto, or f32: weights decoded, all sums and caches in float32")
      ->check(CLI::IsMember({"auto", "f32"}))
      ->capture_default_str();
  app.add_option("--kv", engine.kv, "Type of the cache: f16 (default), f32 or q8_0")
      ->check(CLI::IsMember({"f16", "f32", "q8_0"}));
  app.add_option("--context", engine.context, "Positions a sequence may hold; default: the model's own")
      ->type_name("N")
      ->check(whole_number(1, int64_t(1) << 40));
  add_repeatable(app, "--override-kv", engine.override_kv,
                 "KEY=TYPE:VALUE in place of the file's metadata; may be repeated");
  app.add_option("--spin", engine.spin, "For proofs of the deadlines: NODE=SECONDS")->group("");
  app.add_flag("--allow-split", allow_split, "Let named ops of a model on an accelerator run on the CPU");
}

void ModelOptions::add_draft(CLI::App& app) {
  CLI::Option* draft =
      app.add_option(
             "--draft", engine.draft,
             "A smaller model with the same tokens, whose guesses the model checks in one step: the same text,\n"
             "sooner if many are right")
          ->type_name("PATH");
  app.add_option("--draft-tokens", engine.draft_tokens, "Tokens that are guessed at a time")
      ->type_name("N")
      ->check(whole_number(1, most_draft_tokens))
      ->capture_default_str()
      ->needs(draft);
}

void ModelOptions::check() const {
  check_device_name(engine.device);
  if (allow_split) bad_usage("--allow-split: {} runs all of a model or refuses it; nothing is split", engine.device);
}

std::shared_ptr<Engine> ModelOptions::load(World& world) const {
  check();
  EngineOptions options = engine;
  if (!options.draft.empty() && options.draft != "mtp") options.draft = resolve_model(options.draft);
  Progress progress;
  options.on_weights = [&](int64_t done, int64_t all) {
    progress.show(fmt::format("loading {}: {} of {} MB", path, done / 1000000, all / 1000000));
  };
  std::shared_ptr<Engine> loaded = world.load(resolve_model(path), options);
  progress.clear();
  const ModelInfo& info = loaded->info();
  log_verbose("device {}, precision {}, cache {}, context {}", info.device, info.precision, info.kv, info.context);
  return loaded;
}

void SamplingFlags::add(CLI::App& app) {
  const std::string group = "Sampling";
  const auto number = [&](const char* name, auto& value, const char* help) {
    app.add_option(name, value, help)->capture_default_str()->group(group);
  };
  number("--temp", temperature, "Temperature; 0: greedy");
  number("--top-k", top_k, "Only the K likeliest tokens; 0: off");
  number("--top-p", top_p, "Only the likeliest tokens that together reach P; 1: off");
  number("--min-p", min_p, "Only tokens at least P times as likely as the likeliest; 0: off");
  number("--typical", typical, "Locally typical sampling of mass P; 1: off");
  number("--repeat-penalty", repeat_penalty, "Divides the logits of tokens seen in the last 64; 1: off");
  number("--frequency-penalty", frequency_penalty, "Taken off for each time that a token was seen; 0: off");
  number("--presence-penalty", presence_penalty, "Taken off once if a token was seen; 0: off");
  add_repeatable(app, "--logit-bias", logit_bias, "ID=X added to a token's logit, -inf to exclude it; may be repeated")
      ->type_name("ID=X")
      ->group(group);
  app.add_option("--seed", seed, "Seed of the draws; default: a new one each time, reported by -v and --json")
      ->group(group)
      ->check([](const std::string& text) {  // the library would take the greatest for what is greater
        uint64_t value = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        return error == std::errc() && end == text.data() + text.size()
                   ? std::string()
                   : "'" + text + "' has to be from 0 to 18446744073709551615";
      });
}

SamplingOptions SamplingFlags::options() const {
  check_range(temperature >= 0 && std::isfinite(temperature), "--temp", temperature, "0 or greater");
  check_range(top_k >= 0, "--top-k", top_k, "0 (off) or greater");
  check_range(top_p > 0 && top_p <= 1, "--top-p", top_p, "above 0 and at most 1 (off)");
  check_range(min_p >= 0 && min_p <= 1, "--min-p", min_p, "from 0 (off) to 1");
  check_range(typical > 0 && typical <= 1, "--typical", typical, "above 0 and at most 1 (off)");
  check_range(repeat_penalty > 0 && std::isfinite(repeat_penalty), "--repeat-penalty", repeat_penalty,
              "above 0 (1: off)");
  check_range(std::isfinite(frequency_penalty), "--frequency-penalty", frequency_penalty, "a number");
  check_range(std::isfinite(presence_penalty), "--presence-penalty", presence_penalty, "a number");
  SamplingOptions o{.temperature = temperature,
                    .top_k = top_k,
                    .top_p = top_p,
                    .min_p = min_p,
                    .typical = typical,
                    .repeat_penalty = repeat_penalty,
                    .frequency_penalty = frequency_penalty,
                    .presence_penalty = presence_penalty};
  for (const std::string& text : logit_bias) o.logit_bias.push_back(parse_bias(text));
  o.seed = seed ? *seed : std::random_device{}();
  return o;
}

void GenerationFlags::add(CLI::App& app) {
  app.add_option("-n,--max-tokens", max_tokens, "At most N new tokens; default: what the context leaves")
      ->type_name("N")
      ->check(whole_number(0, int64_t(1) << 40));
  add_repeatable(app, "--stop", stop, "End before this text; may be repeated");
  app.add_flag("--ignore-eos", ignore_eos, "Go on past the model's end token");
  app.add_option("--deadline", deadline, "Stop after so many seconds, loading included (exit 1)")->type_name("SECONDS");
  sampling.add(app);
}

GenerateOptions GenerationFlags::options() const {
  if (deadline && !(*deadline > 0 && std::isfinite(*deadline)))
    bad_usage("--deadline {}: has to be above 0", *deadline);
  for (const std::string& s : stop)
    if (s.empty()) bad_usage("--stop: an empty text would end every answer at its start");
  GenerateOptions o;
  o.sampling = sampling.options();
  o.max_tokens = max_tokens.value_or(-1);
  o.stop = stop;
  o.ignore_eos = ignore_eos;
  o.deadline = deadline.value_or(0);
  return o;
}

double deadline_left(const World& world, double deadline) {
  return deadline > 0 ? std::max(deadline - seconds_since(world.started), 1e-9) : 0;
}

}  // namespace consonant
