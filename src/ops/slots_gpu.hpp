// SPDX-License-Identifier: Apache-2.0
#pragma once

// How kernels of accelerators find a sequence's tokens and its slot (graph/inputs.hpp's Slots).
#include "ops/gpu_rows.hpp"
#include "ops/slots.hpp"

namespace consonant::GPU_BUILD {

struct SlotTable {
  gpu::Ptr<const int32_t> pos, seq, slots;
  int64_t tokens = 0, sequences = 0;

  // Behind the last token of the sequence that token `first` belongs to: its tokens are neighbours.
  GPU_FN int64_t end_of_run(int64_t first) const {
    const int32_t sequence = seq[first];
    int64_t inside = first, outside = tokens;
    for (int64_t step = 1; inside + step < outside; step *= 2) {
      if (seq[inside + step] == sequence)
        inside += step;
      else
        outside = inside + step;
    }
    while (inside + 1 < outside) {
      const int64_t middle = (inside + outside) / 2;
      (seq[middle] == sequence ? inside : outside) = middle;
    }
    return outside;
  }
};

// `first`: the number of the node's input pos, which seq and slots follow.
inline SlotTable slot_table(const Args& args, size_t first) {
  return {pointer<const int32_t>(args.in[first]), pointer<const int32_t>(args.in[first + 1]),
          pointer<const int32_t>(args.in[first + 2]), args.in[first].shape[0], args.in[first + 2].shape[0]};
}

}  // namespace consonant::GPU_BUILD
