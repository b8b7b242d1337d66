// SPDX-License-Identifier: Apache-2.0
// The kernels of this build, and its devices.
#include <vector>

#include "device/gpu.hpp"
#include "ops/gpu_kernel.hpp"

namespace consonant::GPU_BUILD {

#define GPU(name) GpuKernel name##_gpu();
#ifdef __CUDACC__
#include "ops/cuda.def"
#endif
#include "ops/gpu.def"
#undef GPU

namespace {

std::span<const GpuKernel> kernels() {
  static const std::vector<GpuKernel> all = {
#define GPU(name) name##_gpu(),
#ifdef __CUDACC__
#include "ops/cuda.def"
#endif
#include "ops/gpu.def"
#undef GPU
  };
  return all;
}

}  // namespace

const Backend& backend() {
  static const Backend all = {CONSONANT_VERSION, gpu::device_kind, gpu::device_count, gpu::open_device, kernels};
  return all;
}

}  // namespace consonant::GPU_BUILD

#ifndef GPU_EMULATED
extern "C" __attribute__((visibility("default"))) const consonant::Backend* consonant_backend() {
  return &consonant::GPU_BUILD::backend();
}
#endif
