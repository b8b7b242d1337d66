// SPDX-License-Identifier: Apache-2.0
#include "ops/relu_squared/relu_squared.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> relu_squared_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return relu_squared(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return relu_squared(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
