// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ops/cases.hpp"
#include "ops/softmax/softmax.hpp"

namespace consonant {

std::vector<OpCase> softmax_cases() {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<OpCase> cases =
      elementwise_cases([](CaseBuilder& b, const Shape& shape) { return softmax(b.values("x", shape, 3)); });
  const auto add = [&](const char* name, const std::vector<float>& numbers) {
    cases.push_back({name, [numbers](CaseBuilder& b) { return softmax(b.numbers("x", per_token(7, 300), numbers)); }});
  };
  add("minus infinity here and there", {1, -inf, 2.5f, -inf, -inf, 0, -3});
  add("rows of minus infinity", {-inf});
  add("large magnitudes", {3e38f, -3e38f, 1e20f, 3e38f});
  add("infinities", {1, 2, inf, -inf, 5});
  add("NaN", {-inf, -inf, nan});
  for (int64_t n : {4095, 4097, 150001})
    cases.push_back(
        {fmt::format("[2, {}]", n), [n](CaseBuilder& b) { return softmax(b.values("x", per_token(2, n), 8)); }});
  for (OpCase& c : cases) {
    CaseBuilder builder;
    c.reduction = c.build(builder).shape().last();
  }
  return cases;
}

}  // namespace consonant
