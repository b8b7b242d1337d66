// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

FORMS(q2_k)
FORMS(q3_k)

}  // namespace consonant::GPU_BUILD::mma
