// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/work.hpp"

namespace consonant {

// The tokens of one sequence in a step.
struct SequenceRun {
  int64_t first, last;  // tokens first ... last - 1
  int64_t position;     // of the first
  int64_t slot;

  int64_t count() const { return last - first; }
};

// Calls fn(run) for each sequence of a step, in the order of its tokens. pos, seq [token], slots [sequence].
template <class F>
void for_sequences(const View& pos, const View& seq, const View& slots, const F& fn) {
  const auto *position = pos.as<int32_t>(), *sequence = seq.as<int32_t>();
  const int64_t tokens = seq.shape[0];
  for (int64_t first = 0, last = 0; first < tokens; first = last) {
    while (last < tokens && sequence[last] == sequence[first]) ++last;
    fn(SequenceRun{first, last, position[first], slots.as<int32_t>()[sequence[first]]});
  }
}

// Refuses nodes whose float32 inputs have rows that aren't contiguous: inputs 0 ... count - 1 of a node with slots.
Refusal wants_float_inputs(const Node& node, size_t count);

}  // namespace consonant
