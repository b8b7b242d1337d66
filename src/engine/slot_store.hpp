// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "models/language_model.hpp"
#include "ops/kernel.hpp"

namespace consonant {

// The sizes of the states that sequences keep besides the paged cache, all that a plan needs to know of them.
struct SlotLayout {
  std::vector<MambaShape> layers;
  int slots = 0;

  int64_t bytes_per_slot() const;
  int64_t bytes() const;
  // The states as values of a graph, and as views without data.
  std::vector<MambaState> states() const;
  View view(const StateAttr& state) const;
};

// The states of all Mamba layers, a slot a sequence: that of the same number in the paged cache. A slot needs no
// clearing: whoever begins at position 0 doesn't look at it.
class SlotStore {
 public:
  explicit SlotStore(SlotLayout layout, Accelerator* accelerator = nullptr);
  const SlotLayout& layout() const { return layout_; }

  void copy(int from, int to);

  // Where a device finds a layer's states.
  View view(const StateAttr& state) const;
  // A slot's memory on the device, a part for each layer and kind of state.
  std::vector<std::span<std::byte>> parts(int slot) const;

 private:
  SlotLayout layout_;
  std::vector<Buffer> conv_, ssm_;  // a layer each
};

}  // namespace consonant
