// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel relu_gpu() { return activation_gpu<Activation::relu>("relu", Op::relu); }

}  // namespace consonant::GPU_BUILD
