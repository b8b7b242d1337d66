// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_kernel.hpp"

namespace consonant {

extern const Kernel gelu_erf_cpu = ActivationKernel<Activation::gelu_erf>::cpu(Op::gelu_erf);

}  // namespace consonant
