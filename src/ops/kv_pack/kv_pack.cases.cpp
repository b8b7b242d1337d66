// SPDX-License-Identifier: Apache-2.0
#include "ops/kv_pack/kv_pack.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> kv_pack_cases() {
  std::vector<OpCase> cases;
  for (const DType type : {DType::f32, DType::f16})
    for (const int64_t positions : {1, 50, 64, 65, 1500})
      for (const auto& [heads, dim] : {std::pair{1, 16}, {6, 64}, {3, 13}})
        cases.push_back({fmt::format("{}, {} positions, {} heads of {}", name(type), positions, heads, dim),
                         [=, heads = heads, dim = dim](CaseBuilder& b) {
                           return kv_pack(b.values("k", {positions, heads, dim}),
                                          b.values("v", {positions, heads, dim}), type)
                               .first;
                         }});
  return cases;
}

}  // namespace consonant
