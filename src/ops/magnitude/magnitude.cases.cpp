// SPDX-License-Identifier: Apache-2.0
#include "ops/magnitude/magnitude.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> magnitude_cases() {
  std::vector<OpCase> cases;
  for (const int64_t n : {1, 2, 7, 129, 1025})
    for (const int64_t tokens : {0, 1, 17, 300})
      cases.push_back({fmt::format("[{}, {}]", tokens, 2 * n),
                       [=](CaseBuilder& b) { return magnitude(b.values("x", per_token(tokens, 2 * n))); }});
  cases.push_back({"[4, 3, 20]", [](CaseBuilder& b) { return magnitude(b.values("x", per_token(4, 3, 20))); }});
  for (const float spread : {1e-30f, 1e30f})
    cases.push_back({fmt::format("[3, 66] of size {}", spread),
                     [spread](CaseBuilder& b) { return magnitude(b.values("x", per_token(3, 66), spread)); }});
  return cases;
}

}  // namespace consonant
