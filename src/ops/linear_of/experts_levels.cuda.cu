// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_of/experts_mma.hpp"

namespace consonant::GPU_BUILD::mma {

EXPERTS(iq4_nl)
EXPERTS(iq4_xs)
EXPERTS(mxfp4)

}  // namespace consonant::GPU_BUILD::mma
