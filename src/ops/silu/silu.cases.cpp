// SPDX-License-Identifier: Apache-2.0
#include "ops/silu/silu.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> silu_cases() {
  return activation_cases([](CaseBuilder& b, const Shape& shape) { return silu(b.values("x", shape)); },
                          [](CaseBuilder& b, const Shape& shape, const std::vector<float>& numbers) {
                            return silu(b.numbers("x", shape, numbers));
                          });
}

}  // namespace consonant
