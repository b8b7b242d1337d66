// SPDX-License-Identifier: Apache-2.0
#include "ops/beside/beside.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> beside_cases() {
  std::vector<OpCase> cases;
  for (const int64_t rows : {1, 3, 70, 1030})
    for (const std::vector<int64_t>& columns : std::vector<std::vector<int64_t>>{{5}, {1, 33}, {64, 7, 64, 64}})
      for (const bool one : {false, true})
        cases.push_back({fmt::format("{} rows of {} parts{}", rows, columns.size(), one ? " and one row" : ""),
                         [=](CaseBuilder& b) {
                           std::vector<Tensor> parts;
                           for (const int64_t n : columns)
                             parts.push_back(b.values(fmt::format("part {}", parts.size()), {rows, n}));
                           if (one) parts.insert(parts.begin() + 1, b.values("row", {1, 9}));
                           return beside(parts);
                         }});
  return cases;
}

}  // namespace consonant
