// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "decode/sampler.hpp"
#include "graph/node.hpp"
#include "runtime/batch.hpp"

namespace consonant {

// What the op `sample` reads besides the logits, row by row.
class DrawColumns {
 public:
  DrawColumns() = default;
  explicit DrawColumns(int64_t slots) : slots_(slots) {}

  // At most as many adjustments as there are slots.
  void add(const DrawOptions& options, uint64_t number, std::vector<Adjustment> adjustments);
  int64_t slots() const { return slots_; }  // a row's places for tokens whose logits change

  // The numbers of `count` rows from `first` on, for inputs whose names end in `suffix`; valid as long as this is.
  std::vector<NamedNumbers> rows(size_t first, size_t count, std::string_view suffix = {}) const;

  // The same as inputs of a graph for `rows` rows, and the token and log-probability drawn from `logits`.
  static std::pair<Tensor, Tensor> sample_from(const Tensor& logits, int64_t rows, int64_t slots,
                                               std::string_view suffix = {});

 private:
  int64_t slots_ = 0;
  std::vector<float> numbers_, bias_;
  std::vector<int32_t> integers_, adjusted_;
};

// The columns of a step's draws.
class DrawInputs {
 public:
  DrawInputs() = default;
  // Takes the next number of each draw's sampler, unless they don't fit.
  DrawInputs(std::span<const Draw> draws, int64_t vocabulary);

  // Places for tokens whose logits change that a program has; a step uses the fewest of these that hold its own.
  static constexpr int64_t least_slots = 64, most_slots = 4096;
  int64_t slots() const { return columns_.slots(); }
  bool fit() const { return slots() > 0; }  // whether no draw changes the logits of more than `most_slots` tokens

  // As those of the columns.
  std::vector<NamedNumbers> rows(size_t first, size_t count) const { return columns_.rows(first, count); }
  static std::pair<Tensor, Tensor> sample_from(const Tensor& logits, int64_t rows, int64_t slots) {
    return DrawColumns::sample_from(logits, rows, slots);
  }

 private:
  DrawColumns columns_;
};

}  // namespace consonant
