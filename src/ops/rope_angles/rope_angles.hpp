// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// YaRN (Peng et al. 2023): frequencies that turn less than `slow` times over `context` positions are divided by
// `factor`, those that turn more than `fast` times are kept, and what lies between is blended.
struct Yarn {
  double factor = 1;  // 1: none of this
  double context = 0, fast = 32, slow = 1;
};

// A rotary position embedding (Su et al. 2021).
struct Rotary {
  int64_t dims = 0;  // numbers of a head that turn: the first ones
  double base = 10000;
  double scale = 1;        // of positions: 1 / factor with linear scaling (Chen et al. 2023)
  bool neighbours = true;  // pairs (2i, 2i + 1), as GGUF stores llama; otherwise (i, i + dims / 2)
  Tensor divisors;         // optional weight [dims / 2]: frequencies are divided by it (llama3 scaling)
  Yarn yarn = {};
  double magnitude = 1;  // what sines and cosines are multiplied by
};

// pos [token] i32 -> [token, dims]: cos then sin of the dims / 2 angles pos * scale * base^(-2i / dims) / divisor[i],
// the frequencies changed as `yarn` says, times the magnitude.
// The same positions and rotation are computed once a step, whatever the number of layers.
Tensor rope_angles(Tensor pos, const Rotary& rotary, Location at = Location::current());

}  // namespace consonant
