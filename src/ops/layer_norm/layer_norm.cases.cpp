// SPDX-License-Identifier: Apache-2.0
#include "ops/layer_norm/layer_norm.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> layer_norm_cases() {
  std::vector<OpCase> cases = elementwise_cases([](CaseBuilder& b, const Shape& shape) {
    return layer_norm(b.values("x", shape), b.vector("w", shape.last()), b.vector("b", shape.last()), 1e-5f);
  });
  for (const float spread : {1e-4f, 1e4f})
    cases.push_back({fmt::format("[5, 576] of size {}", spread), [spread](CaseBuilder& b) {
                       return layer_norm(b.values("x", per_token(5, 576), spread), b.vector("w", 576),
                                         b.vector("b", 576), 1e-12f);
                     }});
  cases.push_back({"[3, 70] of equal numbers", [](CaseBuilder& b) {
                     return layer_norm(b.numbers("x", per_token(3, 70), {3}), b.vector("w", 70), b.vector("b", 70),
                                       1e-5f);
                   }});
  for (OpCase& c : cases) {
    CaseBuilder builder;
    c.reduction = c.build(builder).shape().last();
    // A difference from the mean has the rounding error of the numbers, and of a few numbers it may be all that is
    // left.
    c.magnitude = c.reduction < 8 ? 100 : 4;
  }
  return cases;
}

}  // namespace consonant
