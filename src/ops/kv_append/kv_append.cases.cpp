// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_append/kv_append.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> kv_append_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType type, int64_t heads, int64_t key_dim, int64_t value_dim,
                       const std::vector<CaseBuilder::Sequence>& sequences) {
    cases.push_back(
        {fmt::format("{}, {} heads of {} and {}, {}", name(type), heads, key_dim, value_dim, describe(sequences)),
         [=](CaseBuilder& b) {
           CaseBuilder::Cache c = b.cache(type, heads, key_dim, value_dim, sequences, false);
           Tensor k = b.values("k", per_token(c.tokens, heads, key_dim)),
                  v = b.values("v", per_token(c.tokens, heads, value_dim));
           return kv_append(c.kv, k, v, c.mask).first;
         }});
  };
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    add(type, 1, 32, 32, {{0, 1}});
    add(type, 3, 64, 64, {{60, 9}});
    add(type, 2, 96, 32, {{0, 17}, {63, 1}, {128, 2}, {5, 130}});
    add(type, 4, 256, 256, {{1000, 1}});
    add(type, 2, 64, 64, {{10, 0}});
  }
  add(DType::f32, 2, 1, 7, {{0, 3}});
  add(DType::f16, 3, 80, 13, {{0, 3}, {70, 1}});
  return cases;
}

}  // namespace consonant
