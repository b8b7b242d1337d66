// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel sigmoid_gpu() { return activation_gpu<Activation::sigmoid>("sigmoid", Op::sigmoid); }

}  // namespace consonant::GPU_BUILD
