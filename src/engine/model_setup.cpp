// SPDX-License-Identifier: Apache-2.0
#include "engine/model_setup.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/log.hpp"
#include "device/spin.hpp"
#include "engine/device_names.hpp"
#include "engine/memory_info.hpp"
#include "runtime/backends.hpp"

namespace consonant {

namespace {

std::string megabytes(int64_t bytes) { return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6); }

DType parse_kv(const EngineOptions& options) {
  if (options.kv.empty()) return options.precision == "f32" || options.device == "reference" ? DType::f32 : DType::f16;
  for (DType type : {DType::f16, DType::f32, DType::q8_0})
    if (options.kv == name(type)) return type;
  bad_usage("a cache of '{}'; there are f16, f32 and q8_0", options.kv);
}

// NODE=SECONDS
void set_spin(const std::string& text, const Target& target) {
  const size_t equals = text.rfind('=');
  double seconds = 0;
  if (equals != std::string::npos && equals > 0) {
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + equals + 1, end, seconds);
    if (error != std::errc() || rest != end) seconds = 0;
  }
  constexpr double most = 60;
  if (!(seconds > 0 && seconds <= most))
    bad_usage("a spin of '{}'; wanted is NODE=SECONDS, for instance blk.0/attend=2, of up to {} s", text, most);
  if (!target.accelerator) bad_usage("a spin of '{}', but {} has no queue that is waited for", text, name(target.kind));
  spinning(*target.accelerator).spin_at(text.substr(0, equals), seconds);
}

}  // namespace

Target open_target(const std::string& device) {
  const DeviceName name = parse_device_name(device);
  if (!is_accelerator(name.kind)) return name.kind;
  const Backend& backend = find_backend(name.kind);
  return {backend.open(name.index), backend.kernels()};
}

std::string device_text(const Target& target) {
  const Accelerator* a = target.accelerator.get();
  return a ? fmt::format("{}:{} ({})", name(target.kind), a->info().index, a->info().name)
           : std::string(name(target.kind));
}

void check_device_name(const std::string& device) {
  if (device != "auto") parse_device_name(device);
}

void bound_waits(const Target& target, double deadline) {
  constexpr double most = 60, grace = 0.5;  // seconds
  if (target.accelerator) target.accelerator->set_deadline(deadline > 0 ? std::min(deadline + grace, most) : most);
}

ModelFile open_for(const std::string& path, const EngineOptions& options) {
  if (options.precision != "auto" && options.precision != "f32")
    bad_usage("the precision '{}'; there are auto and f32", options.precision);
  ModelFile file = open_model(path);
  for (const std::string& text : options.override_kv) apply_override(*file.meta, text);
  return file;
}

void check_overrides(const ModelFile& file) {
  for (const char* later : {"general.name", "tokenizer.chat_template"}) file.meta->has(later);  // read when asked for
  file.meta->check_overrides();
}

RunnerOptions runner_options_of(const EngineOptions& options, const Target& target) {
  RunnerOptions runner;
  runner.device = target;
  if (options.threads < 0 || options.threads > ThreadPool::most)
    bad_usage("{} threads, but they go from 1 to {} (0: one a core)", options.threads, ThreadPool::most);
  runner.threads = options.threads > 0 ? options.threads : usable_cores();
  runner.small_activations = options.precision == "auto";
  runner.kv = parse_kv(options);
  runner.on_weights = options.on_weights;
  if (!options.spin.empty()) set_spin(options.spin, target);
  return runner;
}

std::vector<WeightSource> sources_of(const ModelFile& file, const Weights& weights) {
  std::vector<WeightSource> sources;
  for (const StoredTensor* tensor : weights.used())
    sources.push_back({tensor->name, tensor->type, tensor->sizes, tensor->load, file.release});
  return sources;
}

void warn_of_unused(const ModelFile& file, const Weights& weights) {
  const std::vector<std::string> unused = weights.unused();
  constexpr size_t shown = 3;
  if (!unused.empty())
    log_warning("{}: {} tensors that {} has no use for: {}{}", file.meta->source, unused.size(),
                file.meta->string("general.architecture"),
                fmt::join(unused.begin(), unused.begin() + static_cast<int64_t>(std::min(shown, unused.size())), ", "),
                unused.size() > shown ? ", ..." : "");
}

int64_t available_memory(const Target& target) {
  return target.accelerator ? target.accelerator->free_bytes() : available_memory();
}

void check_memory(const ModelFile& file, const Target& target, int64_t needed, const std::string& advice) {
  const int64_t available = available_memory(target);
  if (available >= 0 && needed > available)
    throw_error(Exit::memory, "{} needs {} for weights, cache and a step{}, but {} are available; {}",
                file.meta->source, megabytes(needed),
                target.accelerator ? " on " + target.accelerator->info().name : std::string(), megabytes(available),
                advice);
}

ModelInfo describe_model(const std::string& path, const ModelFile& file, const Weights& weights,
                         const EngineOptions& options, const RunnerOptions& runner, int64_t weight_bytes) {
  ModelInfo info;
  info.architecture = file.meta->string("general.architecture");
  info.name = file.meta->string("general.name", "");
  info.path = path;
  info.format = file.format;
  info.device = device_text(runner.device);
  info.precision = options.precision;
  info.kv = name(runner.kv);
  for (const StoredTensor* tensor : weights.used()) info.parameters += element_count(tensor->sizes);
  info.file_bytes = file.file_bytes;
  info.weight_bytes = weight_bytes;
  info.threads = runner.threads;
  info.has_chat_template = file.meta->has("tokenizer.chat_template");
  return info;
}

}  // namespace consonant
