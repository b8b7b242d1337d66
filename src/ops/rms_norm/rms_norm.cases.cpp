// SPDX-License-Identifier: Apache-2.0
#include "ops/rms_norm/rms_norm.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> rms_norm_cases() {
  std::vector<OpCase> cases = elementwise_cases([](CaseBuilder& b, const Shape& shape) {
    return rms_norm(b.values("x", shape), b.vector("w", shape.last()), 1e-6f);
  });
  for (const float spread : {1e-4f, 1e4f})
    cases.push_back({fmt::format("[5, 576] of size {}", spread), [spread](CaseBuilder& b) {
                       return rms_norm(b.values("x", per_token(5, 576), spread), b.vector("w", 576), 1e-12f);
                     }});
  cases.push_back({"[3, 70] of zeros", [](CaseBuilder& b) {
                     return rms_norm(b.numbers("x", per_token(3, 70), {0}), b.vector("w", 70), 1e-12f);
                   }});
  for (OpCase& c : cases) {
    CaseBuilder builder;
    c.reduction = c.build(builder).shape().last();
  }
  return cases;
}

}  // namespace consonant
