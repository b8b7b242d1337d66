// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "cli/bench.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "engine/memory_info.hpp"

namespace consonant {

bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  return bool(file << "5" << std::flush);
}

namespace {

struct Measured {
  std::string model, device;
  std::vector<std::string> passed_over;
  BenchResult bench;
  Spread prefill, decode, first_token;  // tokens/s, tokens/s, ms
  double load_ms = 0, weights_s = 0, bandwidth = 0;
  int64_t weight_bytes = 0, peak_bytes = 0;

  // Decode reads the weights and the cache once a step, so memory bounds it: bytes a token x tokens/s over bytes/s.
  double share(double decode_tokens_per_s) const {
    return bandwidth > 0 ? double(bench.decode_bytes_per_token) * decode_tokens_per_s / bandwidth : 0;
  }
};

nlohmann::ordered_json to_json(const MemoryInUse& m) { return {{"device_bytes", m.device}, {"host_bytes", m.host}}; }

nlohmann::ordered_json to_json(const Measured& m) {
  nlohmann::ordered_json json;
  json["model"] = m.model;
  json["device"] = m.device;
  json["passed_over"] = m.passed_over;
  json["threads"] = m.bench.threads;
  json["prompt"] = m.bench.prompt;
  json["gen"] = m.bench.generated;
  json["batch"] = m.bench.batch;
  json["depth"] = m.bench.depth;
  put(json, "prefill_tokens_per_s", m.prefill);
  put(json, "decode_tokens_per_s", m.decode);
  put(json, "time_to_first_token_ms", m.first_token);
  put(json, "load_ms", {m.load_ms, m.load_ms, m.load_ms});
  json["peak_bytes"] = m.peak_bytes;
  put(json, "decode_share_of_bandwidth", {m.share(m.decode.median), m.share(m.decode.min), m.share(m.decode.max)});
  json["weights"] = {{"bytes", m.weight_bytes},
                     {"seconds", m.weights_s},
                     {"bytes_per_s", m.weights_s > 0 ? double(m.weight_bytes) / m.weights_s : 0}};
  json["memory"] = {{"begin", to_json(m.bench.begin)}, {"end", to_json(m.bench.end)}};
  json["launches_per_token"] = m.bench.launches_per_token;  // the CPU has no queue to launch into or to wait for
  json["waits_per_token"] = m.bench.waits_per_token;
  json["bandwidth_bytes_per_s"] = m.bandwidth;
  for (const BenchResult::Kernel& k : m.bench.kernels)
    json["kernels"].push_back(
        {{"name", k.name}, {"count", k.count}, {"seconds", k.seconds}, {"weight_bytes", k.weight_bytes}});
  return json;
}

struct Bench {
  ModelOptions model;
  AudioBench audio;
  BenchOptions options;
  int64_t soak = 0;                // generations
  std::vector<int> threads = {0};  // 0: the default
  bool json = false;

  Measured measure(World& world, int threads) const;
  int run_soak(World& world) const;
  int run(World& world) const;
};

Measured Bench::measure(World& world, int count) const {
  ModelOptions one = model;
  one.engine.threads = count;
  // Room for what is measured, if that isn't stated: the model's own context may be many times larger.
  if (one.engine.context == 0) one.engine.context = options.depth + std::max(options.prompt, options.generate + 1);
  Measured m;
  const std::shared_ptr<Engine> engine = one.load(world);
  m.model = engine->info().path;
  m.device = engine->info().device, m.passed_over = engine->info().passed_over;
  m.weight_bytes = engine->info().weight_bytes, m.weights_s = engine->info().weights_s;
  m.load_ms = engine->load_seconds() * 1e3;
  m.bench = world.bench(*engine, options);
  m.prefill = spread_of(m.bench.prefill_tokens_per_s);
  m.decode = spread_of(m.bench.decode_tokens_per_s);
  m.first_token = spread_of(m.bench.time_to_first_token_ms);
  m.peak_bytes = peak_memory();  // before the bandwidth is measured, which takes memory of its own
  m.bandwidth = m.bench.bandwidth > 0 ? m.bench.bandwidth : world.bandwidth(m.bench.threads);
  return m;
}

std::string table(const std::vector<Measured>& results) {
  std::string text = fmt::format("{}\n{:>7} {:>7} {:>6} {:>6} {:>6} {:>22} {:>22} {:>10} {:>9} {:>9} {:>7}\n",
                                 results.front().model, "threads", "prompt", "gen", "batch", "depth",
                                 "prefill tokens/s", "decode tokens/s", "first ms", "load ms", "peak MB", "share");
  const auto cell = [](const Spread& s) { return fmt::format("{:.1f} ({:.1f}-{:.1f})", s.median, s.min, s.max); };
  for (const Measured& m : results)
    text += fmt::format("{:>7} {:>7} {:>6} {:>6} {:>6} {:>22} {:>22} {:>10.1f} {:>9.1f} {:>9.1f} {:>6.0f}%\n",
                        m.bench.threads, m.bench.prompt, m.bench.generated, m.bench.batch, m.bench.depth,
                        cell(m.prefill), cell(m.decode), m.first_token.median, m.load_ms, double(m.peak_bytes) / 1e6,
                        100 * m.share(m.decode.median));
  for (const Measured& m : results) {
    if (m.bench.kernels.empty()) continue;
    text += fmt::format("{:>7} {:>9} {:>9} {:>7}  kernels of a decoded token, each kind alone\n", "count", "us each",
                        "us", "GB/s");
    for (const BenchResult::Kernel& k : m.bench.kernels)
      text += fmt::format("{:>7} {:>9.2f} {:>9.1f} {:>7.0f}  {}\n", k.count, k.seconds * 1e6,
                          double(k.count) * k.seconds * 1e6, double(k.weight_bytes) / k.seconds / 1e9, k.name);
  }
  text += "share: of the memory's bandwidth, measured now, that decode reaches; medians (least-greatest)\n";
  return text;
}

int Bench::run_soak(World& world) const {
  if (threads.size() > 1) bad_usage("--soak: one number of --threads, not {}", threads.size());
  ModelOptions one = model;
  one.engine.threads = threads.front();
  if (one.engine.context == 0) one.engine.context = options.prompt + options.generate;
  const std::shared_ptr<Engine> engine = one.load(world);
  const SoakResult r = world.soak(*engine, {soak, options.prompt, options.generate});
  const Spread times = spread_of(r.seconds);
  if (json) {
    nlohmann::ordered_json document;
    document["model"] = engine->info().path, document["device"] = engine->info().device;
    document["generations"] = r.generations, document["warm_up"] = r.warm_up, document["tokens"] = r.tokens;
    put(document, "seconds", times);
    document["memory"] = {{"loaded", to_json(r.loaded)},
                          {"first", to_json(r.first)},
                          {"warm_up", to_json(r.warm)},
                          {"last", to_json(r.last)}};
    document["grew"] = r.grew();
    world.out.line(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    const auto line = [](const char* when, const MemoryInUse& m) {
      return fmt::format("{:<22} {:>14.1f} {:>14.1f}\n", when, double(m.device) / 1e6, double(m.host) / 1e6);
    };
    world.out.write(fmt::format("{}\n{} generations, {} tokens, {:.3f} s each ({:.3f}-{:.3f})\n{:<22} {:>14} {:>14}\n",
                                engine->info().path, r.generations, r.tokens, times.median, times.min, times.max,
                                "memory in use", "device MB", "host MB") +
                    line("loaded", r.loaded) + line("after the first", r.first) +
                    line(fmt::format("after the first {}", r.warm_up).c_str(), r.warm) + line("after all", r.last));
  }
  if (r.grew())
    throw_error(Exit::failed, "memory grew in {} generations: the device's by {} bytes, the host's by {}",
                r.generations - r.warm_up, r.last.device - r.warm.device, r.last.host - r.warm.host);
  return 0;
}

int Bench::run(World& world) const {
  if (soak > 0) return run_soak(world);
  if (!audio.audio.empty()) {
    AudioBench one = audio;
    one.threads = threads, one.repeat = options.repeat, one.json = json;
    return one.run(world, model);
  }
  std::vector<Measured> results;
  for (const int count : threads) {
    if (count < 0 || (count == 0 && threads.size() > 1)) bad_usage("--threads {}: has to be 1 or greater", count);
    if (!results.empty() && !reset_peak())
      log_warning("the peak memory of {} threads includes what ran before: /proc/self/clear_refs can't be written",
                  count);
    results.push_back(measure(world, count));
    log_verbose("{} threads: prefill {:.1f}, decode {:.1f} tokens/s", results.back().bench.threads,
                results.back().prefill.median, results.back().decode.median);
  }
  if (!json) {
    world.out.write(table(results));
    return 0;
  }
  nlohmann::ordered_json document;
  document["results"] = nlohmann::ordered_json::array();
  for (const Measured& m : results) document["results"].push_back(to_json(m));
  world.out.line(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return 0;
}

}  // namespace

Action add_bench(CLI::App& program) {
  CLI::App& app = add_command(program, "bench", "Speed, and its share of the memory's bandwidth",
                              "consonant bench -m model.gguf --prompt 512 --gen 128 --threads 1,2 --repeat 3 --json");
  auto command = std::make_shared<Bench>();
  command->model.add(app);
  app.remove_option(app.get_option("--threads"));
  const CLI::Validator counts = whole_number(0, int64_t(1) << 30), positive = whole_number(1, int64_t(1) << 30);
  app.add_option("--threads", command->threads, "CPU threads, one run for each of a list: 1,2")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,...")
      ->check(whole_number(1, ThreadPool::most));
  CLI::Option* prompt = app.add_option("--prompt", command->options.prompt, "Tokens of the prompt");
  CLI::Option* gen = app.add_option("--gen", command->options.generate, "Tokens generated");
  for (CLI::Option* option : {prompt, gen}) option->check(positive)->capture_default_str();
  app.add_option("--depth", command->options.depth, "Positions that the cache holds beforehand")
      ->check(counts)
      ->capture_default_str();
  app.add_option("--batch", command->options.batch, "Sequences at once")->check(positive)->capture_default_str();
  CLI::Option* audio =
      app.add_option("--audio", command->audio.audio, "Transcribe this recording, with a speech model");
  audio->type_name("FILE")->excludes(prompt)->excludes(gen);
  app.add_option("-l,--language", command->audio.language, "Of --audio: what is spoken")
      ->needs(audio)
      ->capture_default_str();
  app.add_option("--beam", command->audio.beam, "Of --audio: texts that are followed at the same time")
      ->needs(audio)
      ->check(whole_number(1, 64))
      ->capture_default_str();
  app.add_option("--soak", command->soak,
                 "So many generations of changing lengths up to --prompt and --gen; exit 1 if memory grew")
      ->type_name("N")
      ->check(whole_number(1, int64_t(1) << 30))
      ->excludes(audio);
  app.add_option("--repeat", command->options.repeat, "Repetitions; the median counts")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  app.add_flag("--kernels", command->options.kernels, "Time the kernels of a decoded token too, on an accelerator")
      ->excludes(audio);
  app.add_flag("--json", command->json, "One JSON document");
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
