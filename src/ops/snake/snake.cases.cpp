// SPDX-License-Identifier: Apache-2.0
#include "ops/snake/snake.hpp"

#include "ops/cases.hpp"

namespace consonant {

// Frequencies and amplitudes about one, as trained ones are. The sine, its square and what the amplitude makes of it
// are rounded each, like the terms of a sum.
std::vector<OpCase> snake_cases() {
  std::vector<OpCase> cases = elementwise_cases([](CaseBuilder& b, const Shape& shape) {
    const std::vector<float> logarithms = {0.5f, -1, 0, 1.25f, -0.3f, 0.1f, 2};
    return snake(b.values("x", shape, 3), b.numbers("a", {shape.last()}, logarithms),
                 b.numbers("b", {shape.last()}, {0.2f, -0.4f, 1, 0}));
  });
  for (OpCase& c : cases) c.reduction = 4;
  return cases;
}

}  // namespace consonant
