// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace consonant {

// Numbers for an input that only some graphs have, in the input's own type: from its first element on, at most as many
// as it holds.
struct NamedNumbers {
  std::string name;
  std::span<const std::byte> bytes;
};

// The numbers of one step: tokens of several sequences, concatenated; those of one sequence are neighbours and in the
// order of their positions.
struct Batch {
  std::vector<int32_t> tokens;     // ids
  std::vector<int32_t> positions;  // of each token in its sequence
  std::vector<int32_t> sequences;  // of each token: row of `pages`
  std::vector<int32_t> wanted;     // rows of `tokens` whose output is wanted
  std::vector<int32_t> pages;      // [sequence, pages_per_sequence], -1 past a sequence's last page
  int32_t pages_per_sequence = 0;
  std::vector<int32_t> slots;  // of each row of `pages`: the sequence's slot in the states that have one
  std::vector<NamedNumbers> more;
};

}  // namespace consonant
