// SPDX-License-Identifier: Apache-2.0
#include "ops/gated/gated.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> gated_cases() {
  std::vector<OpCase> cases;
  for (const Activation f : {Activation::silu, Activation::gelu}) {
    const std::string label = f == Activation::silu ? "silu, " : "gelu, ";
    for (OpCase& c : activation_cases(
             [f](CaseBuilder&b, const Shape&shape) { return gated(f, b.values("gate", shape), b.values("x", shape)); },
             [f](CaseBuilder&b, const Shape&shape, const std::vector<float>&numbers) {
               return gated(f, b.numbers("gate", shape, numbers), b.values("x", shape));
             })) {
      c.name = label + c.name;
      cases.push_back(std::move(c));
    }
  }
  return cases;
}

}  // namespace consonant
