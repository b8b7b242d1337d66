// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/threads.hpp"
#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "engine/memory_info.hpp"

namespace consonant {
namespace {

struct Spread {
  double median = 0, min = 0, max = 0;
};

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size(), half = n / 2;
  return {n % 2 ? values[half] : (values[half - 1] + values[half]) / 2, values.front(), values.back()};
}

struct Measured {
  std::string model, device;
  BenchResult bench;
  Spread prefill, decode, first_token;  // tokens/s, tokens/s, ms
  double load_ms = 0, bandwidth = 0;
  int64_t peak_bytes = 0;

  // Decode reads the weights and the cache once a step, so memory bounds it: bytes a token x tokens/s over bytes/s.
  double share(double decode_tokens_per_s) const {
    return bandwidth > 0 ? double(bench.decode_bytes_per_token) * decode_tokens_per_s / bandwidth : 0;
  }
};

nlohmann::ordered_json to_json(const Measured& m) {
  nlohmann::ordered_json json;
  const auto put = [&](const std::string& key, const Spread& s) {
    json[key] = s.median;
    json[key + "_min"] = s.min;
    json[key + "_max"] = s.max;
  };
  json["model"] = m.model;
  json["device"] = m.device;
  json["threads"] = m.bench.threads;
  json["prompt"] = m.bench.prompt;
  json["gen"] = m.bench.generated;
  json["batch"] = m.bench.batch;
  json["depth"] = m.bench.depth;
  put("prefill_tokens_per_s", m.prefill);
  put("decode_tokens_per_s", m.decode);
  put("time_to_first_token_ms", m.first_token);
  put("load_ms", {m.load_ms, m.load_ms, m.load_ms});
  json["peak_bytes"] = m.peak_bytes;
  put("decode_share_of_bandwidth", {m.share(m.decode.median), m.share(m.decode.min), m.share(m.decode.max)});
  json["launches_per_token"] = 0;  // the CPU has no queue to launch into or to wait for
  json["waits_per_token"] = 0;
  json["bandwidth_bytes_per_s"] = m.bandwidth;
  return json;
}

struct Bench {
  ModelOptions model;
  BenchOptions options;
  std::vector<int> threads = {0};  // 0: the default
  bool json = false;

  Measured measure(World& world, int threads) const;
  int run(World& world) const;
};

// Lets the kernel's high-water mark begin anew, so that each count of threads has its own.
bool reset_peak() {
  std::ofstream file("/proc/self/clear_refs");
  return bool(file << "5" << std::flush);
}

Measured Bench::measure(World& world, int count) const {
  ModelOptions one = model;
  one.engine.threads = count;
  // Room for what is measured, if that isn't stated: the model's own context may be many times larger.
  if (one.engine.context == 0) one.engine.context = options.depth + std::max(options.prompt, options.generate + 1);
  Measured m;
  const std::shared_ptr<Engine> engine = one.load(world);
  m.model = engine->info().path;
  m.device = engine->info().device;
  m.load_ms = engine->load_seconds() * 1e3;
  m.bench = world.bench(*engine, options);
  m.prefill = spread_of(m.bench.prefill_tokens_per_s);
  m.decode = spread_of(m.bench.decode_tokens_per_s);
  m.first_token = spread_of(m.bench.time_to_first_token_ms);
  m.peak_bytes = peak_memory();  // before the bandwidth is measured, which takes memory of its own
  m.bandwidth = world.bandwidth(m.bench.threads);
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
  text += "share: of the memory's bandwidth, measured now, that decode reaches; medians (least-greatest)\n";
  return text;
}

int Bench::run(World& world) const {
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
  app.add_option("--prompt", command->options.prompt, "Tokens of the prompt")->check(positive)->capture_default_str();
  app.add_option("--gen", command->options.generate, "Tokens generated")->check(positive)->capture_default_str();
  app.add_option("--depth", command->options.depth, "Positions that the cache holds beforehand")
      ->check(counts)
      ->capture_default_str();
  app.add_option("--batch", command->options.batch, "Sequences at once")->check(positive)->capture_default_str();
  app.add_option("--repeat", command->options.repeat, "Repetitions; the median counts")
      ->check(whole_number(1, 10000))
      ->capture_default_str();
  app.add_flag("--json", command->json, "One JSON document");
  return [command](World& world) { return command->run(world); };
}

}  // namespace consonant
