// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/quantize.hpp"

#include <limits>

#include "ops/cases.hpp"

namespace consonant {

namespace {

std::vector<OpCase> cases_to(DType type) {
  std::vector<OpCase> cases;
  const auto add = [&](int64_t tokens, int64_t n, float spread) {
    cases.push_back({fmt::format("{}, [{}, {}] of size {}", name(type), tokens, n, spread),
                     [=](CaseBuilder& b) { return quantize(b.values("x", per_token(tokens, n), spread), type); }});
  };
  for (int64_t n : {32, 64, 288, 1536}) add(5, n, 1);
  for (int64_t tokens : {0, 1, 1025}) add(tokens, 64, 1);
  add(1, 65568, 1);
  cases.push_back({fmt::format("{}, [5, 3, 96]", name(type)),
                   [=](CaseBuilder& b) { return quantize(b.values("x", per_token(5, 3, 96)), type); }});
  for (float spread : {1e-40f, 1e-30f, 1e30f}) add(3, 96, spread);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& numbers :
       {std::vector<float>{0}, std::vector<float>{-3, 0, 0.5f, 127, -127, 1e-3f, 63.5f}, std::vector<float>(31, 2)})
    cases.push_back({fmt::format("{}, {} numbers over and over", name(type), numbers.size()),
                     [=](CaseBuilder& b) { return quantize(b.numbers("x", per_token(3, 160), numbers), type); }});
  for (float bad : {inf, -inf, nan}) {
    std::vector<float> numbers(67, 1);
    numbers[40] = bad;
    cases.push_back({fmt::format("{}, blocks with {}", name(type), bad),
                     [=](CaseBuilder& b) { return quantize(b.numbers("x", per_token(3, 320), numbers), type); }});
  }
  return cases;
}

}  // namespace

std::vector<OpCase> quantize_cases() {
  std::vector<OpCase> cases = cases_to(DType::q8_x);
  for (OpCase& c : cases_to(DType::q16_x)) cases.push_back(std::move(c));
  return cases;
}

}  // namespace consonant
