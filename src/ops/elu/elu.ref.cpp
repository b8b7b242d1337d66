// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel elu_ref = ActivationKernel<Activation::elu>::reference(Op::elu);

}  // namespace consonant
