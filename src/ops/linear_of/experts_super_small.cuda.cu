// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/experts_mma.hpp"

namespace consonant::GPU_BUILD::mma {

EXPERTS(q2_k)
EXPERTS(q3_k)

}  // namespace consonant::GPU_BUILD::mma
