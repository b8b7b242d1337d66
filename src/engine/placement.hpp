// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "consonant/engine.hpp"
#include "consonant/transcribe.hpp"

namespace consonant {

// What a model's step of one token runs, for `doctor`. That there is one means that every op was placed.
struct Placement {
  // Kernel and its number of nodes, the most frequent first. The processor's are named as their ops.
  std::vector<std::pair<std::string, int64_t>> ops;
  int64_t weight_bytes = 0;
  int64_t cache_bytes_per_position = 0;
  int64_t arena_bytes = 0;  // values of the step
};

Placement placement_of(Engine& engine);
// Of a speech model: encoding a window, and a step of one token. The cache is that of the tokens.
Placement placement_of(Transcriber& transcriber);

}  // namespace consonant
