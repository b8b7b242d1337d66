// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel relu_squared_ref = ActivationKernel<Activation::relu_squared>::reference(Op::relu_squared);

}  // namespace consonant
