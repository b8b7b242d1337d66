// SPDX-License-Identifier: Apache-2.0
#include "ops/attend_latent/latent_launch.hpp"

namespace consonant::GPU_BUILD {

GpuKernel attend_latent_mma_gpu() { return latent::kernel(); }

}  // namespace consonant::GPU_BUILD
