// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "device/accelerator.hpp"
#include "ops/gpu_kernel.hpp"

namespace consonant {

// Where programs run: the processor with one of its two kinds of kernels, or an accelerator with its own.
struct Target {
  DeviceKind kind = DeviceKind::cpu;
  std::shared_ptr<Accelerator> accelerator;  // null on the processor
  std::span<const GpuKernel> kernels;        // of the accelerator

  Target() = default;
  Target(DeviceKind kind) : kind(kind) {}
  Target(std::shared_ptr<Accelerator> device, std::span<const GpuKernel> kernels)
      : kind(device->info().kind), accelerator(std::move(device)), kernels(kernels) {}

  // Tokens up to which all kernels give one the same bits whatever else is in the step (GpuKernel::same_bits_to). Who
  // lets sequences share a step keeps to that, so that none of them sees its neighbours.
  int64_t same_bits_to() const {
    int64_t least = INT64_MAX;
    for (const GpuKernel& kernel : kernels) least = std::min(least, kernel.same_bits_to);
    return least;
  }
};

}  // namespace consonant
