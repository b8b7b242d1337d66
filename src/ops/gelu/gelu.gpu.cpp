// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel gelu_gpu() { return activation_gpu<Activation::gelu>("gelu", Op::gelu); }

}  // namespace consonant::GPU_BUILD
