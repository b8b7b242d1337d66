// SPDX-License-Identifier: Apache-2.0
#include "ops/lstm/lstm.hpp"

#include <cmath>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> lstm_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](DType type, int64_t time, int64_t n, float spread) {
    OpCase c{fmt::format("{} [{}, {}] of size {}", name(type), time, n, spread), [=](CaseBuilder& b) {
               return lstm(b.values("x", {time, 4 * n}, spread), b.matrix("w", type, 4 * n, n), b.vector("b", 4 * n),
                           b.values("state", {2, n}))
                   .first;
             }};
    // Errors go on from row to row, and a cell may hold what many rows added to it.
    c.reduction = n * std::max<int64_t>(1, time);
    c.magnitude = 4;
    cases.push_back(c);
  };
  for (const int64_t n : {1, 3, 8, 20})
    for (const int64_t time : {0, 1, 2, 20}) add(DType::f32, time, n, 1);
  // Wide layers of such weights are chaotic: a rounding error grows tenfold a row.
  for (const int64_t time : {1, 3}) add(DType::f32, time, 128, 1);
  for (const float spread : {1e-3f, 100.0f}) add(DType::f32, 5, 33, spread);
  for (const DType type : weight_types) add(type, 3, 256, 1);
  return cases;
}

}  // namespace consonant
