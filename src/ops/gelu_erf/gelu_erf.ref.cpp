// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel gelu_erf_ref = ActivationKernel<Activation::gelu_erf>::reference(Op::gelu_erf);

}  // namespace consonant
