// SPDX-License-Identifier: Apache-2.0
#include "ops/causal_conv/causal_conv.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> causal_conv_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](int64_t channels, int64_t kernel, const std::vector<CaseBuilder::Sequence>& sequences) {
    OpCase c{fmt::format("{} channels, {} taps, {}", channels, kernel, describe(sequences)), [=](CaseBuilder& b) {
               const Slots slots = b.slots(sequences);
               Tensor state = b.slot_state(StateKind::conv, sequences, {kernel - 1, channels});
               const Tensor x = b.values("x", per_token(slots.pos.shape()[0], channels));
               return causal_conv(state, x, b.vector("w", channels * kernel), b.vector("b", channels), slots);
             }};
    c.reduction = kernel + 1;
    c.magnitude = 3;
    cases.push_back(c);
  };
  for (const int64_t channels : {1, 3, 64, 127, 128, 129, 1030})
    add(channels, 4, {{0, 1}, {1, 1}, {2, 3}, {3, 9}, {1000, 1}});
  for (const int64_t kernel : {2, 3, 5, 9}) add(40, kernel, {{0, 2}, {1, 1}, {2, 11}, {7, 3}, {0, 20}, {50, 1}});
  add(256, 4, {{0, 1}});
  add(256, 4, {{300, 1}});
  add(256, 4, {{0, 130}});
  add(33, 4, {{2, 7}, {5, 8}, {0, 9}, {0, 0}, {1, 15}, {3, 16}, {6, 17}});
  add(20, 4, {{4, 0}});
  add(70000, 2, {{0, 2}, {9, 1}});
  add(3, 4, {{0, 700}, {3, 400}});
  return cases;
}

}  // namespace consonant
