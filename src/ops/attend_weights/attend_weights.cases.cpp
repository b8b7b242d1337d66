// SPDX-License-Identifier: Apache-2.0
#include "ops/attend_weights/attend_weights.hpp"

#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> attend_weights_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType type, int64_t heads, int64_t kv_heads, int64_t dim, int64_t tokens, int64_t positions,
                       const std::vector<int64_t>& chosen) {
    cases.push_back({fmt::format("{}, {} of {} heads of {}, {} tokens over {}", name(type), chosen.size(), heads, dim,
                                 tokens, positions),
                     [=](CaseBuilder& b) {
                       const CaseBuilder::Cache c = b.cache(type, kv_heads, dim, dim, {{positions, tokens}}, true);
                       return attend_weights(b.values("q", per_token(tokens, heads, dim)), c.kv.keys, c.mask, positions,
                                             1 / std::sqrt(static_cast<float>(dim)), chosen);
                     },
                     dim + positions, 2});
  };
  for (const DType type : {DType::f32, DType::f16, DType::q8_0}) {
    add(type, 6, 6, 64, 3, 1500, {0, 5});
    add(type, 4, 2, 32, 1, 63, {3, 1, 2});
    add(type, 2, 2, 64, 5, 64, {1});
    add(type, 2, 1, 64, 0, 65, {1});
  }
  return cases;
}

}  // namespace consonant
