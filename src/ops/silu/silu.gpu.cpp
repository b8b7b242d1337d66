// SPDX-License-Identifier: Apache-2.0
#include "ops/activation_gpu.hpp"

namespace consonant::GPU_BUILD {

GpuKernel silu_gpu() { return activation_gpu<Activation::silu>("silu", Op::silu); }

}  // namespace consonant::GPU_BUILD
