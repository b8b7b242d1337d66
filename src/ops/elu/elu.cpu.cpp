// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel elu_cpu = ActivationKernel<Activation::elu>::cpu(Op::elu);

}  // namespace consonant
