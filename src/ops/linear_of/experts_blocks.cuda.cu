// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/experts_mma.hpp"

namespace consonant::GPU_BUILD::mma {

EXPERTS(q8_0)
EXPERTS(q4_0)
EXPERTS(q4_1)
EXPERTS(q5_0)
EXPERTS(q5_1)

}  // namespace consonant::GPU_BUILD::mma
