// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel silu_cpu = ActivationKernel<Activation::silu>::cpu(Op::silu);

}  // namespace consonant
