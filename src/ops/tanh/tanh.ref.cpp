// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel tanh_ref = ActivationKernel<Activation::tanh>::reference(Op::tanh);

}  // namespace consonant
