// SPDX-License-Identifier: Apache-2.0
#include "ops/attend/attend.hpp"

#include <algorithm>
#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

namespace {

struct Heads {
  int64_t query, kv, dim, value_dim;
};

OpCase attention(DType type, const Heads& h, const std::vector<CaseBuilder::Sequence>& sequences, int64_t window = 0,
                 float spread = 1) {
  int64_t longest = 0;
  for (const CaseBuilder::Sequence& s : sequences) longest = std::max(longest, s.before + s.tokens);
  std::string label = fmt::format("{}, {} heads of {} over {} of {}, {}", name(type), h.query, h.dim, h.kv, h.value_dim,
                                  describe(sequences));
  if (window > 0) label += fmt::format(", window {}", window);
  if (spread != 1) label += fmt::format(", q of size {}", spread);
  const auto build = [=](CaseBuilder& b) {
    const CaseBuilder::Cache c = b.cache(type, h.kv, h.dim, h.value_dim, sequences, true);
    const Mask mask = window > 0 ? c.mask.sliding(window) : c.mask;
    return attend(b.values("q", per_token(c.tokens, h.query, h.dim), spread), c.kv.keys, c.kv.values, mask,
                  1 / std::sqrt(static_cast<float>(h.dim)));
  };
  // A score's own rounding error goes through exp, so it counts as a share of the weight.
  return {label, build, h.dim + longest, 1 + spread};
}

}  // namespace

std::vector<OpCase> attend_cases() {
  std::vector<OpCase> cases;
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    for (const int64_t tokens : {0, 1, 3, 16, 17, 65}) {
      cases.push_back(attention(type, {3, 1, 64, 64}, {{0, tokens}}));
      cases.push_back(attention(type, {4, 2, 32, 32}, {{127, tokens}}));
    }
    for (const int64_t group : {1, 3, 4, 8})  // query heads that share a KV head
      for (const int64_t tokens : {1, 5}) cases.push_back(attention(type, {2 * group, 2, 64, 64}, {{70, tokens}}));
    cases.push_back(attention(type, {4, 2, 256, 256}, {{66, 3}}));
    cases.push_back(attention(type, {4, 2, 64, 96}, {{66, 3}}));
    cases.push_back(attention(type, {6, 2, 64, 64}, {{0, 1}, {200, 1}, {63, 1}, {64, 1}}));
    cases.push_back(attention(type, {3, 3, 64, 64}, {{5, 20}, {130, 1}, {0, 40}, {61, 7}}));
    for (const int64_t tokens : {1, 5}) cases.push_back(attention(type, {20, 1, 32, 32}, {{150, tokens}}));
    // So many that an accelerator needn't spread a token's positions over blocks.
    for (const int64_t window : {0, 40}) cases.push_back(attention(type, {16, 8, 32, 32}, {{240, 69}, {0, 1}}, window));
    for (const int64_t window : {1, 5, 64, 65, 100}) {
      cases.push_back(attention(type, {4, 1, 64, 64}, {{150, 1}, {0, 30}}, window));
      cases.push_back(attention(type, {4, 1, 64, 64}, {{60, 90}}, window));
    }
  }
  for (const DType type : {DType::f32, DType::f16})
    for (const int64_t dim : {16, 80}) {
      cases.push_back(attention(type, {3, 1, dim, dim}, {{50, 1}}));
      cases.push_back(attention(type, {3, 1, dim, dim}, {{50, 17}}, 33));
    }
  cases.push_back(attention(DType::f32, {2, 1, 1, 7}, {{3, 4}}));
  cases.push_back(attention(DType::f16, {2, 1, 13, 9}, {{63, 2}}));
  for (const int64_t before : {1100, 8500}) cases.push_back(attention(DType::f16, {2, 1, 32, 32}, {{before, 1}}));
  cases.push_back(attention(DType::f16, {1, 1, 32, 32}, {{19999, 1}}));
  // Texts of which at least one is long, a token each: an accelerator brings them in parts.
  cases.push_back(attention(DType::f16, {8, 1, 64, 64},
                            {{20000, 1}, {5, 1}, {70, 1}, {0, 1}, {300, 1}, {64, 1}, {1, 1}, {129, 1}}));
  // Scores in the hundreds: the greatest takes it all, and exp of the others mustn't overflow.
  cases.push_back(attention(DType::f32, {3, 1, 64, 64}, {{100, 5}}, 0, 100));
  return cases;
}

}  // namespace consonant
