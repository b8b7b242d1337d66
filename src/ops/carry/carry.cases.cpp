// SPDX-License-Identifier: Apache-2.0
#include "ops/carry/carry.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> carry_cases() {
  std::vector<OpCase> cases;
  for (const Edge edge : {Edge::zeros, Edge::repeat})
    for (const int32_t before : {0, 1, 700})
      for (const auto& [rows, kept, n] : std::vector<std::array<int64_t, 3>>{
               {1, 1, 1}, {1, 6, 33}, {5, 2, 7}, {6, 6, 64}, {130, 54, 96}, {1030, 3, 130}})
        cases.push_back({fmt::format("[{}, {}] after {} of position {}, {}", rows, n, kept, before,
                                     edge == Edge::zeros ? "zeros" : "repeated"),
                         [=, rows = rows, kept = kept, n = n](CaseBuilder& b) {
                           const std::vector<CaseBuilder::Sequence> stream = {{before, 1}};
                           Tensor state = b.slot_state(StateKind::conv, stream, {kept, n});
                           const Tensor pos = b.integers("position", {2}, {before, before + 1});
                           return carry(state, b.values("x", {rows, n}), pos, b.slots(stream).slots, edge);
                         }});
  return cases;
}

}  // namespace consonant
