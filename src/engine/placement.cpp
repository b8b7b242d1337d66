// SPDX-License-Identifier: Apache-2.0
#include "engine/placement.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "engine/auto_device.hpp"
#include "engine/count_kernels.hpp"
#include "engine/language_engine.hpp"
#include "engine/speech_engine.hpp"

namespace consonant {

namespace {

constexpr const char* advice = "try a smaller model or a more compact quantisation";

// The list in the error of a plan: a line each after the first.
std::vector<std::string> refusals_of(const Error& error) {
  std::vector<std::string> lines;
  const std::string text = error.what();
  for (size_t at = text.find('\n'); at != std::string::npos;) {
    const size_t end = text.find('\n', at + 1), first = text.find_first_not_of(' ', at + 1);
    lines.push_back(text.substr(first, end == std::string::npos ? end : end - first));
    at = end;
  }
  if (lines.empty()) lines.push_back(text);
  return lines;
}

// Calls `fill`; what it throws because the device has no kernel becomes the list of refusals.
template <class Fill>
void placed(Placement& placement, const Fill& fill) {
  try {
    fill();
  } catch (const Error& error) {
    if (error.exit() != Exit::device) throw;
    placement.refusals = refusals_of(error);
  }
}

void take(Placement& placement, const Runner::Needs& needs) {
  placement.weight_bytes = needs.weights, placement.cache_bytes = needs.cache, placement.arena_bytes = needs.arena;
}

// What loading by `auto` would make of it.
void refuse_as_loading(const Placement& placement, const ModelFile& file, const Target& target) {
  if (!placement.refusals.empty())
    throw_error(Exit::device, "no kernel for {} nodes, the first {}", placement.refusals.size(),
                placement.refusals.front());
  check_memory(file, target, placement.needed_bytes, advice);
}

Placement plan_language_on(const std::string& path, const EngineOptions& options, const Target& target) {
  const ModelFile file = open_for(path, options);
  const Weights weights(file);
  const auto model = load_language_model(file, weights);
  const auto sources = sources_of(file, weights);
  RunnerOptions runner = runner_options_of(options, target);
  Placement placement;
  placement.info =
      describe_model(path, file, weights, options, runner, WeightStore::bytes_needed(sources, target.kind));
  ModelInfo& info = placement.info;
  info.layers = model->layers, info.width = model->width, info.vocabulary = model->vocabulary;
  info.context = options.context > 0 ? options.context : model->context;
  placement.weight_bytes = info.weight_bytes;
  placement.available_bytes = available_memory(target);
  placed(placement, [&] {
    runner = runner_options_for(options, target, *model, sources);
    info.context = runner.context;
    placement.ops = [&] {
      const Plan plan = Runner::plan_unloaded(*model, sources, runner);
      return count_kernels({&plan});
    }();
    take(placement, Runner::needs(*model, sources, runner));
    runner.context = counted_context(options, *model, runner);
    placement.needed_bytes = Runner::needs(*model, sources, runner).bytes();
  });
  if (options.device == "auto" && target.accelerator) refuse_as_loading(placement, file, target);
  return placement;
}

Placement plan_speech_on(const std::string& path, const EngineOptions& options, const Target& target) {
  const ModelFile file = open_for(path, options);
  const Weights weights(file);
  const Whisper model(file, weights);
  const auto sources = sources_of(file, weights);
  const RunnerOptions runner = speech_runner_options(options, target);
  Placement placement;
  placement.info =
      describe_model(path, file, weights, options, runner, WeightStore::bytes_needed(sources, target.kind));
  ModelInfo& info = placement.info;
  info.layers = model.layers, info.width = model.width, info.vocabulary = model.vocabulary;
  info.context = model.context;
  placement.weight_bytes = info.weight_bytes;
  placement.available_bytes = available_memory(target);
  placed(placement, [&] {
    const auto plans = WhisperRunner::plan_unloaded(model, sources, runner, 1);
    placement.ops = count_kernels({&plans.first, &plans.second});
    const Runner::Needs needs = WhisperRunner::needs(model, sources, runner, 1);
    take(placement, needs);
    placement.needed_bytes = needs.bytes();
  });
  if (options.device == "auto" && target.accelerator) refuse_as_loading(placement, file, target);
  return placement;
}

template <class Plan>
Placement plan_with(const EngineOptions& options, const Plan& plan) {
  return load_on(options.device, [&](const Target& target, const std::vector<std::string>& passed_over) {
    Placement placement = plan(target);
    placement.info.passed_over = passed_over;
    return placement;
  });
}

DeviceEntry describe_device(const Backend& backend, DeviceKind kind, int index) {
  DeviceEntry entry;
  entry.name = fmt::format("{}:{}", name(kind), index);
  try {
    const std::unique_ptr<Accelerator> device = backend.open(index);
    const AcceleratorInfo& info = device->info();
    entry.model = info.name, entry.target = info.target, entry.driver = info.driver;
    entry.total_bytes = info.total_bytes, entry.free_bytes = device->free_bytes(), entry.unified = info.unified;
  } catch (const Error& error) {
    entry.reason = error.what();
  }
  return entry;
}

}  // namespace

std::vector<std::pair<std::string, int64_t>> count_kernels(std::initializer_list<const Plan*> plans) {
  std::map<std::string, int64_t> counts;
  for (const Plan* plan : plans)
    for (const auto& wave : plan->waves)
      for (const PlannedNode& planned : wave) ++counts[std::string(planned.kernel_name())];
  std::vector<std::pair<std::string, int64_t>> kernels(counts.begin(), counts.end());
  std::stable_sort(kernels.begin(), kernels.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return kernels;
}

Placement plan_language(const std::string& path, const EngineOptions& options) {
  return plan_with(options, [&](const Target& target) { return plan_language_on(path, options, target); });
}

Placement plan_speech(const std::string& path, const EngineOptions& options) {
  return plan_with(options, [&](const Target& target) { return plan_speech_on(path, options, target); });
}

std::vector<BackendEntry> list_accelerators() {
  std::vector<BackendEntry> backends;
  for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::hip}) {
    BackendEntry entry{std::string(name(kind)), plugin_file(kind), {}, {}};
    try {
      const Backend& backend = find_backend(kind);
      const int count = backend.count();
      if (count < 1) entry.reason = "there is no device, or no driver for it";
      for (int i = 0; i < count; ++i) entry.devices.push_back(describe_device(backend, kind, i));
    } catch (const Error& error) {
      entry.reason = error.what();
    }
    backends.push_back(std::move(entry));
  }
  return backends;
}

}  // namespace consonant
