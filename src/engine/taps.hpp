// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/program.hpp"

namespace consonant {

// A tapped node over the steps of a run.
struct TapRows {
  std::string name, source;
  Sizes sizes;  // of a row: [head, dim] or [n]
  std::vector<float> rows;
};

// What the taps of a run's programs gave, row after row, by the node's name.
class TapStore {
 public:
  void keep(const Program& program);  // after each step
  std::vector<TapRows> take() { return std::exchange(taps_, {}); }

 private:
  TapRows& of(const Plan::Tap& tap);

  std::vector<TapRows> taps_;
};

}  // namespace consonant
