// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "runtime/plan.hpp"

namespace consonant {

// Kernels of plans and how many nodes each runs, the most frequent first. The processor's are named as their ops.
std::vector<std::pair<std::string, int64_t>> count_kernels(std::initializer_list<const Plan*> plans);

}  // namespace consonant
