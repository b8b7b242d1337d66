// SPDX-License-Identifier: Apache-2.0
#include "engine/auto_device.hpp"

#include <memory>

namespace consonant {

AutoDevice choose_device(const std::function<const Backend&(DeviceKind)>& find) {
  AutoDevice chosen;
  for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::hip}) {
    std::string at(name(kind));
    try {
      const Backend& backend = find(kind);
      const int count = backend.count();
      if (count < 1) chosen.passed_over.push_back(at + ": there is no device, or no driver for it");
      for (int i = 0; i < count; ++i) {
        at = fmt::format("{}:{}", name(kind), i);
        try {
          chosen.target = Target(backend.open(i), backend.kernels());
          return chosen;
        } catch (const Error& error) {
          chosen.passed_over.push_back(at + ": " + shortened(error.what()));
        }
      }
    } catch (const Error& error) {
      chosen.passed_over.push_back(at + ": " + shortened(error.what()));
    }
  }
  return chosen;
}

std::string shortened(const std::string& message) {
  constexpr int lines = 4;
  size_t end = 0;
  for (int i = 0; i < lines && end != std::string::npos; ++i) end = message.find('\n', end + (i > 0 ? 1 : 0));
  return end == std::string::npos ? message : message.substr(0, end) + "\n  ...";
}

}  // namespace consonant
