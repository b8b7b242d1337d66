// SPDX-License-Identifier: Apache-2.0
#include "ops/cases.hpp"

#include <limits>

namespace consonant {

std::string describe(const std::vector<CaseBuilder::Sequence>& sequences) {
  std::string text;
  for (const CaseBuilder::Sequence& s : sequences)
    text += fmt::format("{}{}{} after {}", text.empty() ? "" : "; ", s.tokens, text.empty() ? " tokens" : "", s.before);
  return text;
}

std::vector<OpCase> elementwise_cases(const std::function<Tensor(CaseBuilder&, const Shape&)>& build) {
  std::vector<OpCase> cases;
  const auto add = [&](const Shape& shape) {
    cases.push_back({to_string(shape), [build, shape](CaseBuilder& b) { return build(b, shape); }});
  };
  for (int64_t n : {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 577, 1025}) add(per_token(3, n));
  for (int64_t tokens : {0, 1, 17, 1030}) add(per_token(tokens, 40));
  add(per_token(2, 66001));
  add(per_token(66000, 3));
  add(per_token(5, 3, 33));
  return cases;
}

std::vector<OpCase> activation_cases(
    const std::function<Tensor(CaseBuilder&, const Shape&)>& build,
    const std::function<Tensor(CaseBuilder&, const Shape&, const std::vector<float>&)>& of_numbers) {
  std::vector<OpCase> cases = elementwise_cases(build);
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> large = {0, -0.0f, 1e-40f, -1e-40f};
  for (float x = 1; x <= 1e4f; x *= 1.07f) large.insert(large.end(), {x, -x});
  for (float x : {87.3f, 88.0f, 88.7f, 88.8f, 103.9f, 1e15f, 1e30f, 1e38f, std::numeric_limits<float>::max()})
    large.insert(large.end(), {x, -x});
  const std::vector<float> strange = {1, nan, -2, inf, 3, -nan, 0, -inf, 0.5f, 2, -1};
  cases.push_back({"large magnitudes", [=](CaseBuilder& b) { return of_numbers(b, per_token(3, 301), large); }});
  cases.push_back({"infinities and NaNs", [=](CaseBuilder& b) { return of_numbers(b, per_token(3, 37), strange); }});
  return cases;
}

}  // namespace consonant
