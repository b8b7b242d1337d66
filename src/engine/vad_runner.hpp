// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/runner.hpp"
#include "engine/taps.hpp"
#include "models/silero_vad.hpp"
#include "tasks/voice_model.hpp"

namespace consonant {

// Silero VAD on a device: its weights there, its programs, and the state of the recording that it listens to. The
// probabilities don't depend on how many windows a step has.
class VadRunner final : public VoiceModel {
 public:
  static constexpr int64_t most_windows = 64;  // a step

  VadRunner(const SileroVad& model, const std::vector<WeightSource>& weights, const RunnerOptions& options);

  int64_t window_samples() const override { return model_.window; }
  void reset() override;
  std::vector<float> listen(std::span<const float> samples) override;

  // From now on values of the nodes that match are kept; see Runner.
  void watch(const std::vector<std::string>& globs);
  std::vector<TapRows> take_taps() { return taps_.take(); }

  int64_t weight_bytes() const { return weights_.bytes(); }

 private:
  Program& program(int64_t windows);
  void step(int64_t windows, std::vector<float>& probabilities);

  const SileroVad& model_;
  RunnerOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  WeightStore weights_;
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // by windows
  std::vector<float> samples_, state_;                    // of a step, after the context; [2, width]
  std::vector<std::string> watched_;
  TapStore taps_;
};

// A model file of Silero VAD and a runner of it.
class VadEngine {
 public:
  VadEngine(const std::string& path, const RunnerOptions& options);

  VadRunner& runner() { return *runner_; }

 private:
  ModelFile file_;
  std::unique_ptr<Weights> weights_;
  std::unique_ptr<SileroVad> model_;
  std::unique_ptr<VadRunner> runner_;
};

}  // namespace consonant
