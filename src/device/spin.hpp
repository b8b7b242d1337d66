// SPDX-License-Identifier: Apache-2.0
#pragma once

// What proves the deadlines on a device of any kind: a node that takes too long, and ends by itself.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/error.hpp"
#include "device/accelerator.hpp"

namespace consonant {

class SpinningDevice {
 public:
  // From now on nodes of this name first take so many seconds more, by the device's own clock. Launches that were
  // captured before don't.
  void spin_at(std::string node, double seconds) { node_ = std::move(node), seconds_ = seconds; }
  const std::string& spin_node() const { return node_; }
  void spin_before(const std::string& node) {
    if (seconds_ > 0 && node == node_) spin(seconds_);
  }

 protected:
  ~SpinningDevice() = default;
  // Queues what does nothing else.
  virtual void spin(double seconds) = 0;

 private:
  std::string node_;
  double seconds_ = 0;
};

// Null for a device that can't; its nodes are none the worse.
inline SpinningDevice* find_spinning(Accelerator& device) { return dynamic_cast<SpinningDevice*>(&device); }
inline SpinningDevice& spinning(Accelerator& device) {
  SpinningDevice* const found = find_spinning(device);
  if (!found) throw_error(Exit::failed, "{} can't be made to wait", device.info().name);
  return *found;
}

// What is said of a device that gives no answer: where it is, and what was in its queue.
inline std::string stalled_words(const std::string& device, const std::string& why, const std::string& node,
                                 int64_t launches) {
  return fmt::format("{} stalled or was lost: {}; it had reached {}; launches queued since the last wait: {}", device,
                     why, node.empty() ? "no node" : node, launches);
}

}  // namespace consonant
