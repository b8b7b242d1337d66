// SPDX-License-Identifier: Apache-2.0
#include "ops/route/route.hpp"

#include <limits>
#include <vector>

#include "ops/cases.hpp"

namespace consonant {

namespace {

struct Routing {
  int64_t tokens, experts;
  RouteAttr attr;
  bool bias = false;
};

std::string label(const Routing& r) {
  std::string text = fmt::format("{} tokens to {} of {} experts, {}", r.tokens, r.attr.used, r.experts,
                                 r.attr.scoring == Scoring::softmax ? "softmax" : "sigmoid");
  if (r.attr.groups > 1) text += fmt::format(", {} of {} groups", r.attr.groups_used, r.attr.groups);
  if (r.bias) text += ", bias";
  if (!r.attr.normalise) text += ", as they are";
  return text;
}

OpCase routing(const Routing& r) {
  const auto build = [r](CaseBuilder& b) {
    const Tensor logits = b.values("logits", per_token(r.tokens, r.experts), 2);
    return route(logits, r.bias ? b.vector("bias", r.experts) : Tensor{}, r.attr).ids;
  };
  return {label(r), build, r.experts};
}

OpCase of_numbers(const std::string& what, int64_t experts, const RouteAttr& attr, const std::vector<float>& numbers) {
  const auto build = [=](CaseBuilder& b) {
    return route(b.numbers("logits", per_token(5, experts), numbers), {}, attr).ids;
  };
  return {fmt::format("{} of {} experts of {}, {}", attr.used, experts, what,
                      attr.scoring == Scoring::softmax ? "softmax" : "sigmoid"),
          build, experts};
}

}  // namespace

std::vector<OpCase> route_cases() {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<OpCase> cases;
  for (const Scoring scoring : {Scoring::softmax, Scoring::sigmoid}) {
    for (const bool normalise : {true, false})
      for (const bool bias : {false, true}) {
        cases.push_back(routing({3, 8, {2, scoring, 1, 1, normalise, 1.5f}, bias}));
        cases.push_back(routing({5, 128, {8, scoring, 1, 1, normalise, 1}, bias}));
        cases.push_back(routing({4, 64, {6, scoring, 4, 2, normalise, 2.5f}, bias}));
      }
    for (const int64_t experts : {1, 3, 63, 65, 255, 257, 512, 1025})
      cases.push_back(routing({2, experts, {std::min<int64_t>(experts, 10), scoring}}));
    for (const int64_t experts : {3, 70}) cases.push_back(routing({2, experts, {experts, scoring}, true}));
    for (const int64_t tokens : {0, 1, 130}) cases.push_back(routing({tokens, 40, {4, scoring}, true}));
    cases.push_back(routing({3, 256, {8, scoring, 8, 4, true, 2.5f}, true}));
    cases.push_back(routing({3, 66, {20, scoring, 33, 10}, true}));
    cases.push_back(of_numbers("few values", 37, {9, scoring}, {2, -1, 0, -0.0f, 2, 7, 0}));
    cases.push_back(of_numbers("far values", 16, {3, scoring, 1, 1, false}, {90, -90, 1e30f, -1e30f, 3, 2.5f, -100}));
    cases.push_back(of_numbers("infinities and NaNs", 11, {11, scoring}, {nan, 1, -inf, inf, -nan, -2, 1e-42f}));
    cases.push_back(
        of_numbers("infinities and NaNs in groups", 12, {6, scoring, 6, 3}, {nan, 1, -inf, inf, -nan, -2, 1e-42f}));
  }
  cases.push_back(routing({66000, 4, {2}}));
  return cases;
}

}  // namespace consonant
