// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_heads/linear_heads.hpp"

#include <algorithm>
#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> linear_heads_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType type, int64_t tokens, int64_t heads, int64_t outputs, int64_t inputs) {
    cases.push_back(
        {fmt::format("[{}, {}, {}] by {} [{}, {}, {}]", tokens, heads, inputs, name(type), heads, outputs, inputs),
         [=](CaseBuilder& b) {
           return linear_heads(b.values("x", per_token(tokens, heads, inputs)),
                               b.matrices("w", type, {heads, outputs, inputs}));
         },
         inputs, std::sqrt(static_cast<double>(inputs))});
  };
  for (const DType type : weight_types) {
    const int64_t block = std::max(32, info(type).block);
    add(type, 1, 4, 64, block);
    add(type, 5, 3, 40, 2 * block);
    add(type, 29, 2, 8, block);
    add(type, 3, 3, 13, block);  // groups of eight rows don't fill a head
  }
  for (const DType type : {DType::f32, DType::f16, DType::bf16, DType::q8_0}) {
    add(type, 1, 5, 512, 192);
    add(type, 1, 5, 256, 512);
    add(type, 70, 3, 70, 352);
    add(type, 131, 2, 69, 64);
    add(type, 0, 2, 16, 64);
  }
  for (const int64_t inputs : {1, 7, 33, 1025}) add(DType::f32, 5, 2, 19, inputs);
  for (const int64_t outputs : {1, 7, 9}) add(DType::f16, 3, 5, outputs, 48);
  return cases;
}

}  // namespace consonant
