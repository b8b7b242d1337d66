// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel relu_squared_cpu = ActivationKernel<Activation::relu_squared>::cpu(Op::relu_squared);

}  // namespace consonant
