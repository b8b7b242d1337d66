// SPDX-License-Identifier: Apache-2.0
#include "ops/mul/mul.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> mul_cases() {
  std::vector<OpCase> cases = elementwise_cases(
      [](CaseBuilder& b, const Shape& shape) { return mul(b.values("a", shape), b.values("b", shape)); });
  for (OpCase& c : elementwise_cases([](CaseBuilder&b, const Shape&shape) {
         return mul(b.values("a", shape), b.vector("vector b", shape.last()));
       })) {
    c.name += " and a vector";
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace consonant
