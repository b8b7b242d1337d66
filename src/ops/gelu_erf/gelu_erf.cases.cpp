// SPDX-License-Identifier: Apache-2.0
#include "ops/gelu_erf/gelu_erf.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> gelu_erf_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return gelu_erf(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return gelu_erf(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
