// SPDX-License-Identifier: Apache-2.0
#include "ops/elu/elu.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> elu_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return elu(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return elu(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
