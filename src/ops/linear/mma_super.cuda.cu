// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

FORMS(q4_k)
FORMS(q5_k)
FORMS(q6_k)

}  // namespace consonant::GPU_BUILD::mma
