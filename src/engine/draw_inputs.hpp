// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "decode/sampler.hpp"
#include "graph/node.hpp"
#include "runtime/batch.hpp"

namespace consonant {

// What the op `sample` reads besides the logits, for the rows of a step.
class DrawInputs {
 public:
  DrawInputs() = default;
  // Takes the next number of each draw's sampler, unless they don't fit.
  DrawInputs(std::span<const Draw> draws, int64_t vocabulary);

  // Places for tokens whose logits change that a program has; a step uses the fewest of these that hold its own.
  static constexpr int64_t least_slots = 64, most_slots = 4096;
  int64_t slots() const { return slots_; }
  bool fit() const { return slots_ > 0; }  // whether no draw changes the logits of more than `most_slots` tokens

  // The numbers of `count` draws from `first` on; valid as long as this is.
  std::vector<NamedNumbers> rows(size_t first, size_t count) const;

  // The same as inputs of a graph for `rows` rows, and the token and log-probability drawn from `logits`.
  static std::pair<Tensor, Tensor> sample_from(const Tensor& logits, int64_t rows, int64_t slots);

 private:
  int64_t slots_ = 0;
  std::vector<float> numbers_, bias_;
  std::vector<int32_t> integers_, adjusted_;
};

}  // namespace consonant
