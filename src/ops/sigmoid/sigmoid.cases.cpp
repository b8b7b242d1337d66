// SPDX-License-Identifier: Apache-2.0
#include "ops/sigmoid/sigmoid.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> sigmoid_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return sigmoid(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return sigmoid(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
