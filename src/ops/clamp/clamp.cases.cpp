// SPDX-License-Identifier: Apache-2.0
#include "ops/clamp/clamp.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> clamp_cases() {
  return elementwise_cases([](CaseBuilder& b, const Shape& shape) { return clamp(b.values("x", shape), -0.75f, 1); });
}

}  // namespace consonant
