// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel tanh_gpu() { return activation_gpu<Activation::tanh>("tanh", Op::tanh); }

}  // namespace consonant::GPU_BUILD
