// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel tanh_cpu = ActivationKernel<Activation::tanh>::cpu(Op::tanh);

}  // namespace consonant
