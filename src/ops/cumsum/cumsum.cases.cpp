// SPDX-License-Identifier: Apache-2.0
#include "ops/cumsum/cumsum.hpp"

#include <cmath>
#include <limits>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> cumsum_cases() {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<OpCase> cases =
      elementwise_cases([](CaseBuilder& b, const Shape& shape) { return cumsum(b.values("x", shape)); });
  for (int64_t n : {2047, 2048, 2049, 5000, 150000, 1000000})
    cases.push_back(
        {fmt::format("[2, {}]", n), [n](CaseBuilder& b) { return cumsum(b.values("x", per_token(2, n))); }});
  cases.push_back({"ones", [](CaseBuilder& b) { return cumsum(b.numbers("x", per_token(2, 4097), {1})); }});
  cases.push_back({"infinity", [](CaseBuilder& b) {
                     return cumsum(b.numbers("x", per_token(1, 7), {1, 2, inf, 3, inf}));
                   }});
  for (int64_t n : {300, 5000})
    cases.push_back({fmt::format("an infinity and its opposite among {}", n), [n](CaseBuilder& b) {
                       std::vector<float> numbers(static_cast<size_t>(n), 0.5f);
                       numbers[static_cast<size_t>(n / 2)] = inf, numbers[static_cast<size_t>(n - 2)] = -inf;
                       return cumsum(b.numbers("x", per_token(2, n), numbers));
                     }});
  for (OpCase& c : cases) {
    CaseBuilder builder;
    c.reduction = c.build(builder).shape().last();
    c.magnitude = 1 + std::sqrt(static_cast<double>(c.reduction));
  }
  return cases;
}

}  // namespace consonant
