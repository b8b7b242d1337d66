// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/pool.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> pool_cases() {
  std::vector<OpCase> cases;
  for (const bool scored : {false, true})
    for (const auto& [rows, n] : std::vector<std::array<int64_t, 2>>{{1, 3}, {2, 1}, {7, 33}, {1030, 64}, {9, 1030}}) {
      OpCase c{fmt::format("[{}, {}]{}", rows, n, scored ? ", scored" : ""), [=, rows = rows, n = n](CaseBuilder& b) {
                 const Tensor x = b.values("x", {rows, n});
                 return scored ? pool(x, b.values("scores", {rows, n}, 2)) : pool(x);
               }};
      c.reduction = rows;
      cases.push_back(c);
    }
  return cases;
}

}  // namespace consonant
