// SPDX-License-Identifier: Apache-2.0
#include "ops/rope/rope.hpp"

#include <fmt/format.h>

#include "ops/op_case.hpp"

namespace consonant {

std::vector<OpCase> rope_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](int64_t tokens, int64_t heads, int64_t dim, int64_t turned, bool neighbours) {
    cases.push_back(
        {fmt::format("[{}, {}, {}], {} turned, {}", tokens, heads, dim, turned, neighbours ? "neighbours" : "halves"),
         [=](CaseBuilder& b) {
           return rope(b.values("x", per_token(tokens, heads, dim)),
                       b.integers("pos", Shape({tokens}, Axis::token), 0, 40000), {turned, 10000, 1, neighbours, {}});
         },
         2});
  };
  for (const bool neighbours : {true, false}) {
    for (int64_t tokens : {0, 1, 3, 17}) add(tokens, 3, 64, 64, neighbours);
    add(2, 1, 2, 2, neighbours);
    add(5, 9, 80, 20, neighbours);
    add(7, 3, 13, 6, neighbours);
    add(2, 5, 256, 256, neighbours);
    add(1100, 1, 16, 16, neighbours);
  }
  return cases;
}

}  // namespace consonant
