// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel gelu_erf_gpu() { return activation_gpu<Activation::gelu_erf>("gelu_erf", Op::gelu_erf); }

}  // namespace consonant::GPU_BUILD
