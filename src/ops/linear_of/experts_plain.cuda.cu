// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/experts_mma.hpp"

namespace consonant::GPU_BUILD::mma {

EXPERTS(f16)
EXPERTS(bf16)

}  // namespace consonant::GPU_BUILD::mma
