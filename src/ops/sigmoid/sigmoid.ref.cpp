// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel sigmoid_ref = ActivationKernel<Activation::sigmoid>::reference(Op::sigmoid);

}  // namespace consonant
