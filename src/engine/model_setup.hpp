// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "consonant/engine.hpp"
#include "engine/runner.hpp"
#include "formats/model_file.hpp"

namespace consonant {

// What loading a model of any kind begins and ends with.

// The device that `--device` names; wrong usage if this program has none of that name.
DeviceKind parse_device(const std::string& device);

// Opens the file and applies the caller's metadata.
ModelFile open_for(const std::string& path, const EngineOptions& options);

// The public options, checked; all but the numbers of positions and sequences.
RunnerOptions runner_options_of(const EngineOptions& options);

std::vector<WeightSource> sources_of(const ModelFile& file, const Weights& weights);

// A tensor that the architecture has no place for may be what tells this model from others of its name.
void warn_of_unused(const ModelFile& file, const Weights& weights);

// Exit::memory, with the sizes and `advice`, if the system has less than `needed` bytes available.
void check_memory(const ModelFile& file, int64_t needed, const std::string& advice);

// What is known once the weights are on the device; sizes of the network come from the caller.
ModelInfo describe_model(const std::string& path, const ModelFile& file, const Weights& weights,
                         const EngineOptions& options, const RunnerOptions& runner, int64_t weight_bytes);

}  // namespace consonant
