// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "engine/model_setup.hpp"

namespace consonant {

// What `--device auto` means here.
struct AutoDevice {
  Target target;                         // the first accelerator that can be used, or else the processor
  std::vector<std::string> passed_over;  // what came before it, and why it isn't used: "hip:0: ..."
};

// CUDA's devices, then HIP's; never the emulated ones. Cheap where there is no plug-in or no driver.
AutoDevice choose_device(const std::function<const Backend&(DeviceKind)>& find = find_backend);

// The first lines of an error that may list every node of a model.
std::string shortened(const std::string& message);

// `load(target, passed_over)` on what was chosen; where the model can't run there, or its memory can't hold it, on the
// processor, with a warning.
template <class Load>
auto load_chosen(AutoDevice chosen, const Load& load) {
  for (const std::string& other : chosen.passed_over) log_verbose("device auto: not {}", other);
  if (const Accelerator* accelerator = chosen.target.accelerator.get()) {
    const std::string device = device_text(chosen.target);
    try {
      auto loaded = load(chosen.target, chosen.passed_over);
      log_verbose("device auto: {}", device);
      return loaded;
    } catch (const Error& error) {
      if (error.exit() != Exit::device && error.exit() != Exit::memory) throw;
      chosen.passed_over.push_back(accelerator->info().name + ": " + shortened(error.what()));
      log_warning("the model runs on the CPU, not on {}: {}", device, shortened(error.what()));
    }
  }
  log_verbose("device auto: cpu");
  return load(Target(DeviceKind::cpu), chosen.passed_over);
}

// The same for the device that the caller names; one that is named is used or refused.
template <class Load>
auto load_on(const std::string& device, const Load& load) {
  return device == "auto" ? load_chosen(choose_device(), load) : load(open_target(device), std::vector<std::string>{});
}

}  // namespace consonant
