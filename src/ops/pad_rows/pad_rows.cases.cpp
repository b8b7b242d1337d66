// SPDX-License-Identifier: Apache-2.0
#include "ops/pad_rows/pad_rows.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> pad_rows_cases() {
  std::vector<OpCase> cases;
  for (const int64_t rows : {0, 1, 5, 1030})
    for (const auto& [before, after] : {std::pair{0, 0}, {1, 1}, {3, 0}, {0, 4}})
      for (const int64_t n : {1, 33, 80})
        cases.push_back({fmt::format("{} + [{}, {}] + {}", before, rows, n, after),
                         [=, before = before, after = after](CaseBuilder& b) {
                           return pad_rows(b.values("x", {rows, n}), before, after);
                         }});
  for (const Edge edge : {Edge::mirror, Edge::repeat})
    for (const int64_t rows : {5, 1030})
      for (const int64_t n : {1, 33})
        cases.push_back({fmt::format("4 + [{}, {}] + 2 {}", rows, n, edge == Edge::mirror ? "mirrored" : "repeated"),
                         [=](CaseBuilder& b) {
                           return pad_rows(b.values("x", {rows, n}), 4, 2, edge);
                         }});
  return cases;
}

}  // namespace consonant
