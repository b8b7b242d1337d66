// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/gpu.hpp"

namespace consonant::GPU_BUILD {

struct Pair {
  float first, second;
};

// (a, b) turned by an angle. Each product is rounded by itself, so that all kernels that turn agree to the bit.
GPU_FN Pair turned(float a, float b, float cosine, float sine) {
  return {gpu::add(gpu::mul(a, cosine), -gpu::mul(b, sine)), gpu::add(gpu::mul(b, cosine), gpu::mul(a, sine))};
}

}  // namespace consonant::GPU_BUILD
