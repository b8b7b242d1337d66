// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "consonant/engine.hpp"
#include "engine/runner.hpp"
#include "formats/model_file.hpp"
#include "runtime/backends.hpp"

namespace consonant {

// What loading a model of any kind begins and ends with.

// The device that `--device` names, opened; auto: see engine/auto_device.hpp. Wrong usage for a name that means
// nothing, Exit::device for a device that this machine hasn't or can't use.
Target open_target(const std::string& device);

// "cpu", "cuda:0 (NVIDIA H200)".
std::string device_text(const Target& target);

// From now on a wait for an accelerator may take as long as the caller's deadline (0: none) and what a step
// that began before it may take, half a second; a minute at most.
void bound_waits(const Target& target, double deadline);

// Opens the file and applies the caller's metadata.
ModelFile open_for(const std::string& path, const EngineOptions& options);

// The public options, checked; all but the numbers of positions and sequences.
RunnerOptions runner_options_of(const EngineOptions& options, const Target& target);

// Bad input for overrides of keys that neither the file nor the model knows. Once both have been read.
void check_overrides(const ModelFile& file);

std::vector<WeightSource> sources_of(const ModelFile& file, const Weights& weights);

// A tensor that the architecture has no place for may be what tells this model from others of its name.
void warn_of_unused(const ModelFile& file, const Weights& weights);

// Bytes that the device can still give; -1 if nothing says.
int64_t available_memory(const Target& target);

// Exit::memory, with the sizes and `advice`, if the device has less than `needed` bytes available.
void check_memory(const ModelFile& file, const Target& target, int64_t needed, const std::string& advice);

// What is known once the weights are on the device; sizes of the network come from the caller.
ModelInfo describe_model(const std::string& path, const ModelFile& file, const Weights& weights,
                         const EngineOptions& options, const RunnerOptions& runner, int64_t weight_bytes);

}  // namespace consonant
