// SPDX-License-Identifier: Apache-2.0
#include "ops/mix/mix.hpp"

#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> mix_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](int64_t tokens, int64_t used, int64_t n) {
    for (const bool residual : {false, true}) {
      const auto build = [=](CaseBuilder& b) {
        const Tensor x = b.values("x", per_token(tokens, used, n)),
                     weights = b.values("weights", per_token(tokens, used));
        return mix(x, weights, residual ? b.values("residual", per_token(tokens, n)) : Tensor{});
      };
      cases.push_back({fmt::format("{} of [{}, {}]{}", used, tokens, n, residual ? " and a residual" : ""), build,
                       used + 1, std::sqrt(double(used))});
    }
  };
  for (const int64_t n : {1, 2, 31, 64, 1023, 1024, 1029}) add(3, 2, n);
  for (const int64_t used : {1, 6, 8, 22}) add(5, used, 48);
  for (const int64_t tokens : {0, 1, 130}) add(tokens, 3, 20);
  add(66000, 2, 3);
  return cases;
}

}  // namespace consonant
