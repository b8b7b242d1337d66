// SPDX-License-Identifier: Apache-2.0
#include "ops/top_k/top_k.hpp"

#include <limits>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> top_k_cases() {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<OpCase> cases;
  const auto add = [&](const Shape& shape, int64_t k) {
    cases.push_back({fmt::format("{} of {}", k, to_string(shape)),
                     [=](CaseBuilder& b) { return top_k(b.values("x", shape), k).first; }});
  };
  for (int64_t n : {1, 2, 3, 17, 129, 1023, 1025, 4096}) add(per_token(3, n), n);
  for (int64_t n : {17, 1025, 4097, 9000}) add(per_token(3, n), 1);
  for (int64_t k : {40, 1000, 2048, 2049, 5001, 8300}) add(per_token(2, 8300), k);
  // The greatest are of a fixed shape, which has neither slices nor parts to try.
  for (int64_t k : {1, 2048, 30000}) add({2, 70001}, k);
  for (int64_t k : {40, 1000}) add({1, 150000}, k);
  add(per_token(66000, 3), 2);
  for (int64_t tokens : {0, 1, 1030}) add(per_token(tokens, 40), 7);
  add(per_token(5, 3, 33), 5);
  for (int64_t n : {37, 9001})
    for (int64_t k : {5, 36}) {
      cases.push_back({fmt::format("{} of {} of few values", k, n), [=](CaseBuilder& b) {
                         return top_k(b.numbers("x", per_token(3, n), {2, -1, 0, -0.0f, 2, 7, 0}), k).first;
                       }});
      cases.push_back({fmt::format("{} of {} with infinities and NaNs", k, n), [=](CaseBuilder& b) {
                         return top_k(b.numbers("x", per_token(3, n), {nan, 1, -inf, inf, -nan, -2, 1e-42f}), k).first;
                       }});
    }
  return cases;
}

}  // namespace consonant
