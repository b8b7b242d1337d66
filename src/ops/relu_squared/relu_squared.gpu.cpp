// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel relu_squared_gpu() { return activation_gpu<Activation::relu_squared>("relu_squared", Op::relu_squared); }

}  // namespace consonant::GPU_BUILD
