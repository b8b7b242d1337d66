// SPDX-License-Identifier: Apache-2.0
#include "ops/tanh/tanh.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> tanh_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return tanh(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return tanh(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
