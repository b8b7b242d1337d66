// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

FORMS(f16)
FORMS(bf16)

}  // namespace consonant::GPU_BUILD::mma
