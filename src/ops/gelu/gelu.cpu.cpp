// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel gelu_cpu = ActivationKernel<Activation::gelu>::cpu(Op::gelu);

}  // namespace consonant
