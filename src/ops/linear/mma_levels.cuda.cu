// SPDX-License-Identifier: Apache-2.0
#include "ops/linear/mma_launch.hpp"

namespace consonant::GPU_BUILD::mma {

FORMS(iq4_nl)
FORMS(iq4_xs)
FORMS(mxfp4)

}  // namespace consonant::GPU_BUILD::mma
