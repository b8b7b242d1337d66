// SPDX-License-Identifier: Apache-2.0
#include "ops/depthwise/depthwise.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> depthwise_cases() {
  std::vector<OpCase> cases;
  for (const auto& [rows, n, kernel] : std::vector<std::array<int64_t, 3>>{
           {1, 1, 1}, {7, 1, 7}, {9, 33, 2}, {20, 130, 7}, {1040, 3, 7}, {8, 1030, 5}}) {
    OpCase c{fmt::format("[{}, {}], {} taps", rows, n, kernel),
             [=, rows = rows, n = n, kernel = kernel](CaseBuilder& b) {
               return depthwise(b.values("x", {rows, n}), b.vector("w", kernel * n), b.vector("b", n));
             }};
    c.reduction = kernel + 1;
    c.magnitude = 3;
    cases.push_back(c);
  }
  return cases;
}

}  // namespace consonant
