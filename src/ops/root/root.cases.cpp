// SPDX-License-Identifier: Apache-2.0
#include "ops/root/root.hpp"

#include "ops/cases.hpp"
#include "ops/scale/scale.hpp"

namespace consonant {

std::vector<OpCase> root_cases() {
  return elementwise_cases(
      [](CaseBuilder& b, const Shape& shape) { return root(scale(b.values("x", shape), 0.01f), 1.5f); });
}

}  // namespace consonant
