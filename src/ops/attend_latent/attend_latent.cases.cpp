// SPDX-License-Identifier: Apache-2.0
#include "ops/attend_latent/attend_latent.hpp"

#include <algorithm>
#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

namespace {

struct Sizes {
  int64_t heads, latent, turned;
};

OpCase attention(DType type, const Sizes& s, const std::vector<CaseBuilder::Sequence>& sequences, int64_t window = 0,
                 float spread = 1) {
  int64_t longest = 0;
  for (const CaseBuilder::Sequence& sequence : sequences)
    longest = std::max(longest, sequence.before + sequence.tokens);
  std::string label = fmt::format("{}, {} heads over rows of {} and {}, {}", name(type), s.heads, s.latent, s.turned,
                                  describe(sequences));
  if (window > 0) label += fmt::format(", window {}", window);
  if (spread != 1) label += fmt::format(", q of size {}", spread);
  const auto build = [=](CaseBuilder& b) {
    const CaseBuilder::Cache c = b.cache(type, 1, 0, s.latent + s.turned, sequences, true);
    const Mask mask = window > 0 ? c.mask.sliding(window) : c.mask;
    return attend_latent(b.values("q", per_token(c.tokens, s.heads, s.latent), spread),
                         b.values("turned", per_token(c.tokens, s.heads, s.turned), spread), c.kv.values, mask,
                         1 / std::sqrt(static_cast<float>(s.latent + s.turned)));
  };
  // A score's own rounding error goes through exp, so it counts as a share of the weight.
  return {label, build, s.latent + s.turned + longest, 1 + spread};
}

}  // namespace

std::vector<OpCase> attend_latent_cases() {
  std::vector<OpCase> cases;
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    for (const int64_t tokens : {0, 1, 3, 17, 65}) {
      cases.push_back(attention(type, {3, 64, 32}, {{0, tokens}}));
      cases.push_back(attention(type, {4, 32, 32}, {{127, tokens}}));
    }
    for (const int64_t heads : {1, 2, 5, 8, 13, 20, 33})
      for (const int64_t tokens : {1, 2}) cases.push_back(attention(type, {heads, 32, 32}, {{70, tokens}}));
    for (const int64_t tokens : {1, 2}) cases.push_back(attention(type, {20, 512, 64}, {{150, tokens}}));
    cases.push_back(attention(type, {16, 512, 64}, {{66, 1}, {0, 1}, {63, 1}, {64, 1}}));
    cases.push_back(attention(type, {6, 64, 32}, {{5, 20}, {130, 1}, {0, 40}, {61, 7}}));
    cases.push_back(attention(type, {4, 32, 32},
                              {{0, 1}, {14, 1}, {15, 1}, {16, 1}, {62, 1}, {63, 1}, {64, 1}, {299, 1}, {4999, 1}}));
    // So many that an accelerator needn't spread a token's positions over blocks.
    for (const int64_t window : {0, 40}) cases.push_back(attention(type, {16, 32, 32}, {{240, 69}, {0, 1}}, window));
    for (const int64_t window : {1, 65}) cases.push_back(attention(type, {4, 64, 32}, {{150, 1}, {0, 30}}, window));
  }
  // More tokens than a kernel spreads over blocks one by one, alone and ragged.
  for (const DType type : {DType::f16, DType::q8_0}) {
    cases.push_back(attention(type, {20, 32, 32}, {{64, 130}}));
    cases.push_back(attention(type, {6, 64, 32}, {{5, 20}, {130, 1}, {0, 60}, {61, 60}}));
  }
  cases.push_back(attention(DType::f16, {16, 512, 64}, {{0, 128}}));
  cases.push_back(attention(DType::f16, {20, 512, 64}, {{2000, 1}}));
  cases.push_back(attention(DType::f16, {128, 512, 64}, {{64, 1}}));
  for (const DType type : {DType::f32, DType::f16})
    for (const int64_t tokens : {1, 17}) cases.push_back(attention(type, {4, 64, 16}, {{50, tokens}}));
  cases.push_back(attention(DType::f32, {2, 7, 1}, {{3, 4}}));
  cases.push_back(attention(DType::f16, {2, 9, 4}, {{63, 2}}));
  for (const int64_t before : {1100, 8500}) cases.push_back(attention(DType::f16, {2, 32, 32}, {{before, 1}}));
  cases.push_back(attention(DType::f16, {1, 32, 32}, {{19999, 1}}));
  // Texts of which at least one is long, a token each: an accelerator brings them in parts.
  cases.push_back(
      attention(DType::f16, {8, 64, 32}, {{20000, 1}, {5, 1}, {70, 1}, {0, 1}, {300, 1}, {64, 1}, {1, 1}, {129, 1}}));
  // Scores in the hundreds: the greatest takes it all, and exp of the others mustn't overflow.
  cases.push_back(attention(DType::f32, {3, 64, 16}, {{100, 5}}, 0, 100));
  return cases;
}

}  // namespace consonant
