// SPDX-License-Identifier: Apache-2.0
#include "runtime/backends.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "base/error.hpp"

namespace consonant {

namespace emu32 {
const Backend& backend();
}
namespace emu64 {
const Backend& backend();
}

namespace {

using Entry = const Backend* (*)();

namespace fs = std::filesystem;

// Where it may lie, the likeliest first.
std::vector<fs::path> plugin_places(DeviceKind kind) {
  const std::string file = fmt::format("libconsonant_{}.so", name(kind));
  std::error_code unreadable;
  const fs::path program = fs::read_symlink("/proc/self/exe", unreadable).parent_path();
  return {(program / file).lexically_normal(), (program / ".." / "lib" / "consonant" / file).lexically_normal()};
}

// A kernel that is loaded only when it is launched for the first time may wait for all that is queued before it, and no
// deadline ends that; so all are loaded with the device. The vendors' libraries look at this while they are loaded
// themselves; who has set it has the last word.
void load_kernels_early(DeviceKind kind) {
  if (kind == DeviceKind::hip)
    setenv("HIP_ENABLE_DEFERRED_LOADING", "0", 0);
  else
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

const Backend& load_plugin(DeviceKind kind) {
  const std::string path = plugin_file(kind);
  if (path.empty()) {
    std::string looked;
    for (const fs::path& place : plugin_places(kind)) looked += (looked.empty() ? "" : " and ") + place.string();
    bad_usage("{} isn't built into this program: there is no {}", name(kind), looked);
  }
  load_kernels_early(kind);
  void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!plugin) throw_error(Exit::device, "{} can't be used here: {}", name(kind), dlerror());
  const auto entry = reinterpret_cast<Entry>(dlsym(plugin, "consonant_backend"));
  if (!entry) throw_error(Exit::device, "{} is no plug-in of this program: it has no consonant_backend", path);
  const Backend& backend = *entry();
  if (backend.version != CONSONANT_VERSION)
    throw_error(Exit::device, "{} is of version {}, this program of {}", path, backend.version, CONSONANT_VERSION);
  return backend;
}

}  // namespace

DeviceName parse_device_name(std::string_view text) {
  const std::string_view kind = text.substr(0, text.find(':'));
  DeviceName device;
  const auto known = [&] {
    for (const DeviceKind k : {DeviceKind::cpu, DeviceKind::reference, DeviceKind::cuda, DeviceKind::hip,
                               DeviceKind::emu32, DeviceKind::emu64})
      if (kind == name(k)) return device.kind = k, true;
    return false;
  };
  if (!known()) bad_usage("the device '{}'; there are auto, cpu, reference, cuda, hip, emu32 and emu64", text);
  if (kind.size() == text.size()) return device;
  const std::string_view number = text.substr(kind.size() + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), device.index);
  const bool several = device.kind == DeviceKind::cuda || device.kind == DeviceKind::hip;
  if (error != std::errc() || end != number.data() + number.size() || device.index < 0 || !several)
    bad_usage("the device '{}'; one of several is written as cuda:1 or hip:1", text);
  return device;
}

const Backend& find_backend(DeviceKind kind) {
  if (kind == DeviceKind::emu32) return emu32::backend();
  if (kind == DeviceKind::emu64) return emu64::backend();
  if (!is_accelerator(kind)) throw_error(Exit::failed, "{} has no backend", name(kind));
  static std::mutex mutex;
  static std::map<DeviceKind, const Backend*> loaded;
  const std::lock_guard lock(mutex);
  const Backend*& backend = loaded[kind];
  if (!backend) backend = &load_plugin(kind);
  return *backend;
}

std::string plugin_file(DeviceKind kind) {
  std::error_code unreadable;
  for (const fs::path& place : plugin_places(kind))
    if (fs::exists(place, unreadable)) return place.string();
  return {};
}

}  // namespace consonant
