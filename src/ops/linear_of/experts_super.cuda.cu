// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/experts_mma.hpp"

namespace consonant::GPU_BUILD::mma {

EXPERTS(q4_k)
EXPERTS(q5_k)
EXPERTS(q6_k)

}  // namespace consonant::GPU_BUILD::mma
