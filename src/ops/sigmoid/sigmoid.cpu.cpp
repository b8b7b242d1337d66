// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel sigmoid_cpu = ActivationKernel<Activation::sigmoid>::cpu(Op::sigmoid);

}  // namespace consonant
