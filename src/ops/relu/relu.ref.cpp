// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel relu_ref = ActivationKernel<Activation::relu>::reference(Op::relu);

}  // namespace consonant
