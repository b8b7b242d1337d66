// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel gelu_ref = ActivationKernel<Activation::gelu>::reference(Op::gelu);

}  // namespace consonant
