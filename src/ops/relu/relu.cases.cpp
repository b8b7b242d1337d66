// SPDX-License-Identifier: Apache-2.0
#include "ops/relu/relu.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> relu_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return relu(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return relu(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
