// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/program.hpp"

namespace consonant {

// Teacher-forces the choice of experts: of two programs of the same graph that run the same steps, the device's goes on
// with the experts that the reference chose wherever it would have taken others. Scores may lie as near to each other
// as rounding is coarse, and whatever follows another expert is no matter of how well anything is computed. So the
// choices are counted as decisions of their own.
class ForcedRouting {
 public:
  // For the reference's step, then for the device's of the same batch.
  Program::Observer reference();
  Program::Observer device();

  int64_t choices() const { return choices_; }  // of a token in a layer
  int64_t differing() const { return differing_; }
  // Of the choices that differ, the worst distance between the scores' logits of both: root mean square of the
  // differences over that of the reference's. Since lockstep compares the routing itself, this is what they come from.
  double worst_drift() const { return worst_drift_; }

 private:
  using Numbers = std::vector<float>;
  struct Choice {
    std::vector<int32_t> experts;  // [token, used]
    Numbers weights, logits;       // [token, used], [token, experts]
  };

  void keep(const PlannedNode& planned, std::span<const View> outputs);
  Choice choice(const PlannedNode& planned, std::span<const View> outputs) const;
  bool correct(const PlannedNode& planned, std::span<const View> outputs);

  std::map<const Node*, std::vector<Numbers>> narrow_;  // outputs of the step that may be logits of experts
  std::map<std::string, Choice> wanted_;                // the reference's, by the node's name
  int64_t choices_ = 0, differing_ = 0;
  double worst_drift_ = 0;
};

}  // namespace consonant
