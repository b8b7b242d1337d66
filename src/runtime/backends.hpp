// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ops/gpu_kernel.hpp"

namespace consonant {

// What `--device` says: "cpu", "reference", "emu32", "emu64", "cuda", "cuda:1", "hip:0".
struct DeviceName {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
};
DeviceName parse_device_name(std::string_view text);  // wrong usage for what names nothing

// The emulators are part of the program. CUDA and HIP are plug-ins, libconsonant_cuda.so and libconsonant_hip.so,
// beside the running program or in ../lib/consonant from there; loaded once. Wrong usage, with where it looked, if
// there is none; Exit::device, with the loader's words, if this machine lacks what it needs, or if it belongs to
// another version.
const Backend& find_backend(DeviceKind kind);

// The file that it would load; empty if there is none.
std::string plugin_file(DeviceKind kind);

}  // namespace consonant
