// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "consonant/engine.hpp"

namespace consonant {

// What a model would run and need on a device, for `doctor`; nothing is loaded to find out.
struct Placement {
  ModelInfo info;
  // Kernel and its number of nodes in a step of one token, the most frequent first. The processor's are named as their
  // ops.
  std::vector<std::pair<std::string, int64_t>> ops;
  std::vector<std::string> refusals;  // nodes that no kernel of the device takes: which, of what shapes, and why
  int64_t weight_bytes = 0;
  int64_t cache_bytes = 0;       // when all positions are filled
  int64_t arena_bytes = 0;       // values of the largest step
  int64_t needed_bytes = 0;      // that have to be free before it is loaded: on the processor a cache grows as it fills
  int64_t available_bytes = -1;  // that the device can give; -1: nothing says

  bool fits() const { return available_bytes < 0 || needed_bytes <= available_bytes; }
};

// With `auto` it is that of the device that loading would take.
Placement plan_language(const std::string& path, const EngineOptions& options);
// Of a speech model: encoding a window, and a step of one token. The cache is that of texts and windows.
Placement plan_speech(const std::string& path, const EngineOptions& options);

// A device of a plug-in.
struct DeviceEntry {
  std::string name;    // "cuda:0"
  std::string model;   // "NVIDIA H200"
  std::string target;  // "sm_90"
  std::string driver;
  std::string reason;  // why it can't be used; then the rest but its name is empty
  int64_t total_bytes = 0, free_bytes = 0;
  bool unified = false;  // its memory is the host's
};
struct BackendEntry {
  std::string name;    // "cuda"
  std::string plugin;  // its file; empty if there is none
  std::string reason;  // why it has no devices
  std::vector<DeviceEntry> devices;
};
// Of CUDA and HIP. Opens every device.
std::vector<BackendEntry> list_accelerators();

}  // namespace consonant
