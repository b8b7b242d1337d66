// SPDX-License-Identifier: Apache-2.0
#include "ops/latent_append/latent_append.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> latent_append_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType type, int64_t latent, int64_t turned,
                       const std::vector<CaseBuilder::Sequence>& sequences) {
    cases.push_back({fmt::format("{}, rows of {} and {}, {}", name(type), latent, turned, describe(sequences)),
                     [=](CaseBuilder& b) {
                       CaseBuilder::Cache c = b.cache(type, 1, 0, latent + turned, sequences, false);
                       return latent_append(c.kv, b.values("latent", per_token(c.tokens, latent)),
                                            b.values("turned", per_token(c.tokens, turned)), c.mask);
                     }});
  };
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    add(type, 512, 64, {{0, 1}});
    add(type, 64, 32, {{60, 9}});
    add(type, 80, 16, {{0, 17}, {63, 1}, {128, 2}, {5, 130}});
    add(type, 512, 64, {{1000, 1}});
    add(type, 64, 64, {{10, 0}});
  }
  add(DType::f32, 7, 2, {{0, 3}});
  add(DType::f16, 64, 16, {{0, 3}, {70, 1}});
  return cases;
}

}  // namespace consonant
