// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/whisper_runner.hpp"
#include "formats/model_file.hpp"
#include "tests/golden.hpp"

namespace consonant {

inline const std::string asr_data = CONSONANT_TEST_DATA "/asr/";

// A Whisper file and a runner of it.
struct LoadedWhisper {
  ModelFile file;
  std::optional<Weights> weights;
  std::optional<Whisper> model;
  std::unique_ptr<WhisperRunner> runner;

  LoadedWhisper(const std::string& path, const RunnerOptions& options, int windows = 1) : file(open_model(path)) {
    weights.emplace(file);
    model.emplace(file, *weights);
    std::vector<WeightSource> sources;
    for (const StoredTensor* t : weights->used())
      sources.push_back({t->name, t->type, t->sizes, t->load, file.release});
    runner = std::make_unique<WhisperRunner>(*model, sources, options, windows);
  }
};

inline RunnerOptions exact(DeviceKind device = DeviceKind::cpu, int threads = 2, int sequences = 8) {
  RunnerOptions options;
  options.device = device, options.threads = threads, options.small_activations = false, options.kv = DType::f32;
  options.sequences = sequences;
  return options;
}

}  // namespace consonant
