// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel relu_cpu = ActivationKernel<Activation::relu>::cpu(Op::relu);

}  // namespace consonant
