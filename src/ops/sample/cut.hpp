// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace consonant {

// Where a ranking ends: what has a smaller key stays, and of what has the same key all up to `index`.
struct Cut {
  float key;
  size_t index;
  bool keeps(float other, size_t i) const { return other < key || (other == key && i <= index); }
};

// The shortest ranking, smallest key first and of equal keys the smaller index first, whose masses add up to `target`
// (above 0); all of them if they never do. No masses: each counts 1. Not a sort: masses are summed in bins of the key,
// the bin in which the target is reached is cut into bins again, and only when few are left in doubt are they ranked
// one by one. Masses are integers, so that their sums don't depend on how they are made.
Cut find_cut(std::span<const float> keys, std::span<const uint64_t> masses, uint64_t target);

}  // namespace consonant
