// SPDX-License-Identifier: Apache-2.0
#include "ops/scale/scale.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> scale_cases() {
  return elementwise_cases([](CaseBuilder& b, const Shape& shape) { return scale(b.values("x", shape), 25.298221f); });
}

}  // namespace consonant
