// SPDX-License-Identifier: Apache-2.0
#include "ops/gelu/gelu.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> gelu_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return gelu(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return gelu(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
