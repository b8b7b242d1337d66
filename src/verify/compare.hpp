// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace consonant {

// How near two tensors of a recording are, row by row over the last dimension.
struct TensorDistance {
  std::string name;
  std::string source;  // "llama.cpp:36", if the recording says it
  double cosine = 1;   // the worst row's
  double max_abs = 0;
  double max_rel = 0;  // greatest difference of a row over that row's greatest magnitude in the reference
  int64_t rows = 0;
  int64_t argmax_changes = 0;        // rows whose greatest element is another one
  int64_t argmax_disagreements = 0;  // of these, those whose margin in the reference exceeds the tie margin
  bool within_tolerance = true;
};

// Rows of `columns` numbers each: `b` against the reference `a`. A row agrees if its cosine is at least `least_cosine`;
// two greatest elements of the reference nearer than `tie_margin` times its root mean square count as a tie. NaN never
// agrees.
TensorDistance distance(std::string name, std::span<const float> a, std::span<const float> b, int64_t columns,
                        double least_cosine, double tie_margin);

struct RecordingDistance {
  std::vector<TensorDistance> tensors;   // logits first, then the tapped nodes in the order of the graph
  std::vector<std::string> only_in_one;  // nodes that just one of the recordings has: not compared
  bool controlled = false;               // both recordings passed their positive control
  double least_cosine = 0, tie_margin = 0;
};

// Compares recordings of the same tokens: other tokens, other shapes, or no recording at all are bad input.
RecordingDistance compare_recordings(const std::filesystem::path& a, const std::filesystem::path& b);

}  // namespace consonant
