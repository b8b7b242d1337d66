// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel elu_gpu() { return activation_gpu<Activation::elu>("elu", Op::elu); }

}  // namespace consonant::GPU_BUILD
