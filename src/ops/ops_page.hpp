// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "ops/gpu_kernel.hpp"

namespace consonant {

// The types that a kernel takes, by the roles of its inputs: "`w`: f16, q8_0; `x`: f32". They are found by asking:
// every case of the op is built with every type in the place of every leaf, and a type is listed where the op's shape
// rule and the kernel's can_run take it.
std::string what_it_takes(const Kernel& kernel);
std::string what_it_takes(const GpuKernel& kernel, const Limits& limits);

// docs/ops.md: each op and its kernels, the accelerators' as a device of these limits has them. What was found on cards
// is left out, as it comes from measurements.
std::string ops_page(std::span<const GpuKernel> emulated, const Limits& limits);

}  // namespace consonant
