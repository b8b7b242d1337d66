// SPDX-License-Identifier: Apache-2.0
// Latent attention for CUDA's tensor cores, on an emulator that plays them, over all cases of its op: its indices, its
// use of shared memory, and that few tokens have the same bits alone.
#include <gtest/gtest.h>

#include "ops/attend_latent/latent_launch.hpp"
#include "ops/sweep_gpu.hpp"

namespace consonant::GPU_BUILD {
namespace {

TEST(LatentOnTensorCores, AgreesWithTheReference) {
  const std::unique_ptr<Accelerator> device = gpu::open_device(0);
  auto& limits = const_cast<Limits&>(device->limits());
  limits.shared_bytes = 227 * 1024, limits.compute = 90;  // what a card with them has
  const SweepResult result = sweep(latent::kernel(), *device);
  EXPECT_GT(result.cases, 60);
  for (const std::string& fault : result.faults) ADD_FAILURE() << fault;
}

}  // namespace
}  // namespace consonant::GPU_BUILD
