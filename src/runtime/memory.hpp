// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace consonant {

// A piece of memory that must exist from wave `first` to wave `last`, both included.
struct Lifetime {
  int64_t bytes;
  int first, last;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // of each lifetime, multiples of 64
  int64_t bytes = 0;
};

// Places the pieces so that no two that live at the same time overlap: the largest first, each in the lowest gap that
// fits (greedy by size, Pisarchyk and Lee 2020).
MemoryPlan place(const std::vector<Lifetime>& lifetimes);

}  // namespace consonant
