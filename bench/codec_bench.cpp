// SPDX-License-Identifier: Apache-2.0
// How much faster than sound Qwen3-TTS's codec runs, and where its time goes:
//
//   codec_bench MODEL.gguf [device] [threads] [frames]
//
// bench/make_codec_gguf.py writes a file of the published size.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "engine/codec_runner.hpp"
#include "engine/model_setup.hpp"

namespace consonant {
namespace {

void report(const char* what, double seconds, int64_t frames) {
  const double sound = static_cast<double>(frames) * 0.08;
  fmt::print("{}: {:.2f} s for {:.2f} s of sound, {:.2f} times as fast\n", what, seconds, sound, sound / seconds);
}

void decode(const std::string& path, const RunnerOptions& options, int64_t frames) {
  const ModelFile file = open_model(path);
  const Weights weights(file);
  const CodecDecoder model(file, weights);
  CodecDecoderRunner runner(model, sources_of(file, weights), options);
  std::vector<int32_t> codes(static_cast<size_t>(frames * model.codebooks));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<int32_t>(i * 7919 % 2048);
  const auto once = [&](std::span<const int32_t> part) {
    const int stream = runner.open();
    const auto start = Clock::now();
    runner.decode(stream, part);
    const double seconds = seconds_since(start);
    runner.close(stream);
    return seconds;
  };
  once(codes);  // programs are made
  report("decoder", once(codes), frames);
  const auto first = std::span(codes).first(static_cast<size_t>(4 * model.codebooks));
  once(first);
  fmt::print("decoder, the first four frames: {:.1f} ms\n", 1e3 * once(first));
  if (options.device.accelerator) return;
  std::map<std::string, double> shares;
  auto last = Clock::now();
  runner.observe([&](const PlannedNode& planned, std::span<const View> outputs) {
    shares[fmt::format("{} {}", planned.op(), to_string(outputs[0].shape))] += seconds_since(last);
    last = Clock::now();
    return false;
  });
  last = Clock::now();
  const auto step = std::span(codes).first(static_cast<size_t>(CodecDecoderRunner::most_frames * model.codebooks));
  const double all = once(step);
  std::vector<std::pair<double, std::string>> sorted;
  for (const auto& [name, seconds] : shares) sorted.emplace_back(seconds, name);
  std::sort(sorted.rbegin(), sorted.rend());
  for (size_t i = 0; i < std::min<size_t>(sorted.size(), 24); ++i)
    fmt::print("  {:5.1f} %  {}\n", 100 * sorted[i].first / all, sorted[i].second);
}

void encode(const std::string& path, const RunnerOptions& options, int64_t frames) {
  const ModelFile file = open_model(path);
  if (!CodecEncoder::is_in(file)) return;
  const Weights weights(file);
  const CodecEncoder model(file, weights);
  CodecEncoderRunner runner(model, sources_of(file, weights), options);
  std::vector<float> samples(static_cast<size_t>(frames * model.samples_per_frame));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = 0.3f * std::sin(0.05f * static_cast<float>(i));
  runner.encode(samples);
  const auto start = Clock::now();
  runner.encode(samples);
  report("encoder", seconds_since(start), frames);
}

}  // namespace
}  // namespace consonant

int main(int argc, char** argv) {
  using namespace consonant;
  if (argc < 2) {
    fmt::print(stderr, "usage: codec_bench MODEL.gguf [device] [threads] [frames]\n");
    return 2;
  }
  try {
    RunnerOptions options;
    options.device = open_target(argc > 2 ? argv[2] : "cpu");
    options.threads = argc > 3 ? std::atoi(argv[3]) : 2;
    options.small_activations = false, options.kv = DType::f32;
    const int64_t frames = argc > 4 ? std::atoi(argv[4]) : 64;
    decode(argv[1], options, frames);
    encode(argv[1], options, frames);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.exit());
  }
}
