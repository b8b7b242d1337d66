// SPDX-License-Identifier: Apache-2.0
#include "engine/vad_runner.hpp"

#include <algorithm>
#include <bit>

#include "audio/audio_source.hpp"
#include "base/error.hpp"
#include "engine/model_setup.hpp"
#include "formats/model_file.hpp"

namespace consonant {

VadRunner::VadRunner(const SileroVad& model, const std::vector<WeightSource>& weights, const RunnerOptions& options)
    : model_(model),
      options_(options),
      pool_(std::make_unique<ThreadPool>(options.threads)),
      weights_(weights, options.device, *pool_),
      samples_(static_cast<size_t>(model.context + most_windows * model.window)) {
  reset();
}

void VadRunner::reset() {
  std::fill(samples_.begin(), samples_.end(), 0.0f);
  state_.assign(static_cast<size_t>(2 * model_.width), 0.0f);
}

Program& VadRunner::program(int64_t windows) {
  std::unique_ptr<Program>& program = programs_[windows];
  if (!program) {
    PlanOptions options;
    options.device = options_.device;
    options.taps = watched_;
    options.weights = &weights_;
    auto [p, state] = model_.probabilities(input("samples", DType::f32, {model_.context + windows * model_.window, 1}),
                                           input("state", DType::f32, {2, model_.width}));
    program = std::make_unique<Program>(make_plan({p, state}, options));
  }
  return *program;
}

void VadRunner::step(int64_t windows, std::vector<float>& probabilities) {
  const auto count = static_cast<size_t>(model_.context + windows * model_.window);
  Batch batch;
  batch.more = {{"samples", std::as_bytes(std::span(samples_).first(count))},
                {"state", std::as_bytes(std::span(state_))}};
  Program& p = program(windows);
  p.run(batch, *pool_);
  if (!watched_.empty()) taps_.keep(p);
  const View out = p.output(0), state = p.output(1);
  probabilities.insert(probabilities.end(), out.as<float>(), out.as<float>() + windows);
  state_.assign(state.as<float>(), state.as<float>() + state.shape.count());
  const auto end = samples_.begin() + static_cast<std::ptrdiff_t>(count);
  std::copy(end - model_.context, end, samples_.begin());
}

// Steps of powers of two windows, so that there are few programs and none reads windows that don't exist.
std::vector<float> VadRunner::listen(std::span<const float> samples) {
  const auto window = static_cast<size_t>(model_.window);
  if (samples.size() % window != 0)
    throw_error(Exit::failed, "{} samples are no whole windows of {}", samples.size(), window);
  std::vector<float> probabilities;
  while (!samples.empty()) {
    const size_t windows = std::min<size_t>(most_windows, std::bit_floor(samples.size() / window));
    std::copy_n(samples.begin(), windows * window, samples_.begin() + model_.context);
    samples = samples.subspan(windows * window);
    step(static_cast<int64_t>(windows), probabilities);
  }
  return probabilities;
}

void VadRunner::watch(const std::vector<std::string>& globs) {
  watched_ = globs;
  programs_.clear();
  taps_.take();
}

VadEngine::VadEngine(const std::string& path, const RunnerOptions& options) : file_(open_model(path)) {
  const std::string_view architecture = file_.meta->string("general.architecture");
  if (architecture != "silero_vad")
    bad_input("{}: the architecture '{}' doesn't find speech; silero_vad does", path, architecture);
  weights_ = std::make_unique<Weights>(file_);
  model_ = std::make_unique<SileroVad>(file_, *weights_);
  if (model_->rate != AudioSource::rate)
    bad_input("{}: is for {} samples a second, not {}", path, model_->rate, AudioSource::rate);
  warn_of_unused(file_, *weights_);
  runner_ = std::make_unique<VadRunner>(*model_, sources_of(file_, *weights_), options);
}

}  // namespace consonant
