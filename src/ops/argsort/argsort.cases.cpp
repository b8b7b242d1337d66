// SPDX-License-Identifier: Apache-2.0
#include "ops/argsort/argsort.hpp"

#include <limits>

#include "ops/cases.hpp"

namespace consonant {

// The widths are those around a block's threads, its tile, and runs of tiles merged once, twice and three times.
std::vector<OpCase> argsort_cases() {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<OpCase> cases;
  for (const Order order : {Order::ascending, Order::descending}) {
    const char* name = order == Order::ascending ? "ascending" : "descending";
    const auto add = [&](const Shape& shape) {
      cases.push_back({fmt::format("{} {}", to_string(shape), name),
                       [=](CaseBuilder& b) { return argsort(b.values("x", shape), order); }});
    };
    for (int64_t n : {1, 2, 3, 17, 64, 65, 128, 129, 1023, 1024, 1025, 4095, 4096, 4097, 5000, 8192, 8193, 16400})
      add(per_token(3, n));
    for (int64_t tokens : {0, 1, 1030}) add(per_token(tokens, 40));
    add(per_token(3, 0));
    add(per_token(5, 3, 33));
    for (int64_t n : {37, 9001}) {
      cases.push_back({fmt::format("[3, {}] of few values, {}", n, name), [=](CaseBuilder& b) {
                         return argsort(b.numbers("x", per_token(3, n), {2, -1, 0, -0.0f, 2, 7, 0}), order);
                       }});
      cases.push_back({fmt::format("[3, {}] with infinities and NaNs, {}", n, name), [=](CaseBuilder& b) {
                         return argsort(b.numbers("x", per_token(3, n), {nan, 1, -inf, inf, -nan, -2, 1e-42f}), order);
                       }});
      cases.push_back({fmt::format("[3, {}] all equal, {}", n, name),
                       [=](CaseBuilder& b) { return argsort(b.numbers("x", per_token(3, n), {5}), order); }});
    }
  }
  // The greatest once each; a fixed shape has neither slices nor parts to try.
  for (const Shape& shape : {per_token(66000, 3), Shape{2, 70000}, Shape{1, 1000000}})
    cases.push_back({fmt::format("{} descending", to_string(shape)),
                     [=](CaseBuilder& b) { return argsort(b.values("x", shape), Order::descending); }});
  return cases;
}

}  // namespace consonant
