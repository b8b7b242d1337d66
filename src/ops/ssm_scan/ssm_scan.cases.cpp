// SPDX-License-Identifier: Apache-2.0
#include "ops/ssm_scan/ssm_scan.hpp"

#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> ssm_scan_cases() {
  std::vector<OpCase> cases;
  struct Sizes {
    int64_t heads, dim, groups, states;
  };
  const auto add = [&](const Sizes& n, const std::vector<CaseBuilder::Sequence>& sequences, float dt = 1) {
    OpCase c{fmt::format("{} heads of {}, {} groups of {}, dt of size {}, {}", n.heads, n.dim, n.groups, n.states, dt,
                         describe(sequences)),
             [=](CaseBuilder& b) {
               const Slots slots = b.slots(sequences);
               const int64_t tokens = slots.pos.shape()[0];
               Tensor state = b.slot_state(StateKind::ssm, sequences, {n.heads, n.states, n.dim});
               SsmInputs in;
               in.x = b.values("x", per_token(tokens, n.heads, n.dim));
               in.dt = b.values("dt", per_token(tokens, n.heads), dt);
               in.b = b.values("b", per_token(tokens, n.groups, n.states));
               in.c = b.values("c", per_token(tokens, n.groups, n.states));
               in.dt_bias = b.vector("dt_bias", n.heads);
               in.a = b.numbers("a", {n.heads}, {-1, -0.02f, -7, -0.3f, -15});  // below 0, or it would grow
               in.d = b.vector("d", n.heads);
               return ssm_scan(state, in, slots);
             }};
    int64_t longest = 1;
    for (const CaseBuilder::Sequence& s : sequences) longest = std::max(longest, s.tokens);
    c.reduction = n.states * std::min<int64_t>(longest, 64);  // what lies further back has decayed
    c.magnitude = 4 * std::sqrt(static_cast<double>(n.states)) * std::max(1.0f, dt);
    cases.push_back(c);
  };
  for (const int64_t dim : {1, 3, 16, 31, 32, 33, 64}) add({2, dim, 1, 16}, {{0, 3}, {5, 1}, {1, 9}});
  for (const int64_t states : {1, 2, 7, 17, 100, 128, 256}) add({3, 16, 3, states}, {{0, 2}, {9, 1}, {3, 18}});
  for (const int64_t groups : {1, 2, 4, 12}) add({12, 16, groups, 16}, {{0, 17}, {40, 16}, {0, 1}, {33, 15}});
  add({8, 64, 2, 128}, {{0, 1}});
  add({8, 64, 2, 128}, {{77, 1}});
  add({1, 64, 1, 128}, {{0, 100}});
  add({2, 8, 1, 4}, {{0, 700}, {3, 300}});
  add({2, 8, 1, 4}, {{4, 0}});
  add({700, 4, 1, 2}, {{0, 2}, {9, 1}});
  for (const float dt : {1e-3f, 30.0f}) add({4, 16, 2, 16}, {{0, 5}, {8, 1}}, dt);
  return cases;
}

}  // namespace consonant
