// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

FORMS(q8_0)
FORMS(q4_0)
FORMS(q4_1)
FORMS(q5_0)
FORMS(q5_1)

}  // namespace consonant::GPU_BUILD::mma
