// SPDX-License-Identifier: Apache-2.0
#include "ops/argmax/argmax.hpp"

#include <limits>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> argmax_cases() {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<OpCase> cases =
      elementwise_cases([](CaseBuilder& b, const Shape& shape) { return argmax(b.values("x", shape)); });
  for (int64_t n : {255, 256, 257, 8191, 8192, 8193, 16385, 150000})
    cases.push_back(
        {fmt::format("[3, {}]", n), [=](CaseBuilder& b) { return argmax(b.values("x", per_token(3, n))); }});
  for (int64_t n : {7, 1025, 20001}) {
    const auto add = [&](const char* name, const std::vector<float>& numbers) {
      cases.push_back({fmt::format("[3, {}] {}", n, name),
                       [=](CaseBuilder& b) { return argmax(b.numbers("x", per_token(3, n), numbers)); }});
    };
    add("of few values", {2, -1, 7, -0.0f, 2, 7, 0, 7});
    add("of zeros", {-0.0f, 0});
    add("with infinities and NaNs", {nan, 1, -inf, inf, -nan});
    add("of NaNs", {nan});
    add("of minus infinity", {-inf});
    add("of minus infinity and NaN", {nan, nan, -inf});
  }
  return cases;
}

}  // namespace consonant
