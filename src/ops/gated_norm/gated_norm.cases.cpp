// SPDX-License-Identifier: Apache-2.0
#include "ops/gated_norm/gated_norm.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> gated_norm_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](const Shape& shape, int64_t groups, float epsilon = 1e-5f) {
    OpCase c{fmt::format("{} in {} groups", to_string(shape), groups), [=](CaseBuilder& b) {
               return gated_norm(b.values("x", shape), b.values("z", shape), b.vector("w", shape.last()), groups,
                                 epsilon);
             }};
    c.reduction = shape.last() / groups;
    cases.push_back(c);
  };
  for (const int64_t n : {1, 2, 7, 16, 17, 33, 64, 577, 1025}) add(per_token(3, n), 1);
  for (const int64_t groups : {2, 3, 8}) add(per_token(5, groups * 24), groups);
  add(per_token(1, 4096), 8);
  add(per_token(2, 30), 30, 0.1f);
  add(per_token(0, 16), 2);
  add(per_token(3, 4, 40), 4);
  add(per_token(66000, 4), 2);
  add(per_token(2, 70000), 1);
  return cases;
}

}  // namespace consonant
