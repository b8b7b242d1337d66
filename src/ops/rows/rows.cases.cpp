// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/rows.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> rows_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType type, int64_t n, int64_t columns, int64_t taken, bool weight) {
    cases.push_back(
        {fmt::format("{} of {} [{}, {}] in {}", taken, weight ? "weights" : "values", n, columns, name(type)),
         [=](CaseBuilder& b) {
           Tensor x = weight ? b.matrix("x", type, n, columns) : b.values("x", {n, columns});
           return rows(x, b.integers("index", Shape({taken}, Axis::wanted), 0, static_cast<int32_t>(n - 1)));
         }});
  };
  for (DType type : weight_types) add(type, 21, 512, 9, true);
  for (int64_t taken : {0, 1, 1025}) add(DType::q8_0, 13, 32, taken, true);
  for (int64_t columns : {1, 7, 33, 1100, 66000}) add(DType::f32, 3, columns, 5, true);
  for (int64_t columns : {1, 7, 33, 1100}) add(DType::f32, 6, columns, 4, false);
  for (DType type : {DType::f32, DType::f16, DType::q8_0, DType::q4_k})
    cases.push_back({fmt::format("rows of zeros among weights [5, 256] in {}", name(type)), [=](CaseBuilder& b) {
                       Tensor x = b.matrix("x", type, 5, 256);
                       return rows(x, b.integers("index", Shape({7}, Axis::wanted), {4, -1, 0, -2, -1, 3, -1}));
                     }});
  return cases;
}

}  // namespace consonant
