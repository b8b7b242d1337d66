// SPDX-License-Identifier: Apache-2.0
#include "ops/log_floor/log_floor.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> log_floor_cases() {
  return elementwise_cases([](CaseBuilder& b, const Shape& shape) { return log_floor(b.values("x", shape), 1e-3f); });
}

}  // namespace consonant
