// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a test may do to an emulated device, and learn from it.
#include <cstdint>

#include "base/error.hpp"
#include "device/accelerator.hpp"

namespace consonant {

class EmulatedDevice {
 public:
  // The launches of this node never end: a wait lasts until its deadline. 0: none.
  virtual void stall_at(uint32_t node) = 0;
  // The device is lost when it reaches this node: the wait fails at once. 0: none.
  virtual void lose_at(uint32_t node) = 0;
  // So many allocations more, pinned or not, then there is no memory; -1: as many as fit.
  virtual void allow_allocations(int64_t count) = 0;
  virtual void set_total_bytes(int64_t bytes) = 0;

  // Whether reads of shared memory that wasn't written are found, and accesses whose order isn't certain. They are
  // unless this is set to false; it more than doubles the speed.
  virtual void check_order(bool checks) = 0;

  // Not yet released, of the device and of pinned memory.
  virtual int64_t allocated_bytes() const = 0;
  virtual int64_t pinned_bytes() const = 0;
  virtual int64_t allocations() const = 0;

 protected:
  ~EmulatedDevice() = default;
};

inline EmulatedDevice& emulated(Accelerator& device) {
  EmulatedDevice* const found = dynamic_cast<EmulatedDevice*>(&device);
  if (!found) throw_error(Exit::failed, "{} isn't emulated", device.info().name);
  return *found;
}

}  // namespace consonant
