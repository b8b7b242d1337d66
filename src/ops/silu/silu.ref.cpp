// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel silu_ref = ActivationKernel<Activation::silu>::reference(Op::silu);

}  // namespace consonant
