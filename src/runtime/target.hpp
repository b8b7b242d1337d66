// SPDX-License-Identifier: Apache-2.0
#pragma once

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
};

}  // namespace consonant
