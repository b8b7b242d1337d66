// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/bench.hpp"
#include "cli/models.hpp"
#include "engine/memory_info.hpp"

namespace consonant {
namespace {

struct AudioMeasured {
  std::string model, device;
  std::vector<std::string> passed_over;
  int threads = 0;
  double audio_s = 0, load_ms = 0;
  int64_t peak_bytes = 0;
  Spread wall, encode, decode, rtf;
};

AudioMeasured measure(World& world, const ModelOptions& model, const AudioBench& bench, int threads) {
  ModelOptions one = model;
  one.engine.threads = threads;
  one.check();
  const std::shared_ptr<Transcriber> transcriber = world.speech.load(resolve_model(one.path), one.engine);
  AudioMeasured m;
  m.model = transcriber->info().path, m.device = transcriber->info().device;
  m.passed_over = transcriber->info().passed_over;
  m.threads = transcriber->info().threads;
  TranscribeOptions options;
  options.language = bench.language, options.beam = bench.beam;
  std::vector<double> wall, encode, decode, rtf;
  for (int i = 0; i < bench.repeat; ++i) {
    const std::unique_ptr<AudioInput> sound = world.speech.open(bench.audio, {});
    const TranscribeTimings t = transcriber->transcribe(*sound, options, {}).timings;
    if (!(t.audio_s > 0)) bad_input("{}: there is no sound in it", bench.audio);
    m.audio_s = t.audio_s, m.load_ms = t.load_s * 1e3;
    wall.push_back(t.wall_s), encode.push_back(t.encode_s), decode.push_back(t.decode_s);
    rtf.push_back(t.wall_s / t.audio_s);
  }
  m.wall = spread_of(wall), m.encode = spread_of(encode), m.decode = spread_of(decode), m.rtf = spread_of(rtf);
  m.peak_bytes = peak_memory();
  return m;
}

nlohmann::ordered_json to_json(const AudioMeasured& m, int beam) {
  nlohmann::ordered_json json;
  json["model"] = m.model;
  json["device"] = m.device;
  json["passed_over"] = m.passed_over;
  json["threads"] = m.threads;
  json["beam"] = beam;
  json["audio_s"] = m.audio_s;
  put(json, "wall_s", m.wall);
  put(json, "encode_s", m.encode);
  put(json, "decode_s", m.decode);
  put(json, "rtf", m.rtf);
  json["load_ms"] = m.load_ms;
  json["peak_bytes"] = m.peak_bytes;
  return json;
}

std::string table(const std::vector<AudioMeasured>& results) {
  std::string text =
      fmt::format("{}, {:.1f} s of sound\n{:>7} {:>22} {:>9} {:>9} {:>8} {:>9} {:>9}\n", results.front().model,
                  results.front().audio_s, "threads", "wall s", "encode s", "decode s", "RTF", "load ms", "peak MB");
  for (const AudioMeasured& m : results)
    text += fmt::format("{:>7} {:>22} {:>9.3f} {:>9.3f} {:>8.4f} {:>9.1f} {:>9.1f}\n", m.threads,
                        fmt::format("{:.3f} ({:.3f}-{:.3f})", m.wall.median, m.wall.min, m.wall.max), m.encode.median,
                        m.decode.median, m.rtf.median, m.load_ms, double(m.peak_bytes) / 1e6);
  return text + "RTF: wall time / sound; medians (least-greatest)\n";
}

}  // namespace

int AudioBench::run(World& world, const ModelOptions& model) const {
  std::vector<AudioMeasured> results;
  for (const int count : threads) {
    if (count == 0 && threads.size() > 1) bad_usage("--threads {}: has to be 1 or greater", count);
    if (!results.empty() && !reset_peak())
      log_warning("the peak memory of {} threads includes what ran before: /proc/self/clear_refs can't be written",
                  count);
    results.push_back(measure(world, model, *this, count));
  }
  if (!json) {
    world.out.write(table(results));
    return 0;
  }
  nlohmann::ordered_json document;
  document["results"] = nlohmann::ordered_json::array();
  for (const AudioMeasured& m : results) document["results"].push_back(to_json(m, beam));
  world.out.line(document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  return 0;
}

}  // namespace consonant
