// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/gpu_kernel.hpp"
#include "ops/sweep.hpp"

namespace consonant {

// Runs a case's node by the reference and by an accelerator's kernel on equal data. Besides the tolerance it checks
// that
//   - every element is written, and nothing behind the outputs and the scratch memory asked for, nor an input,
//   - a launch that was captured before the inputs were there gives the same bits, so that a program may be replayed,
//   - tokens computed apart from their neighbours give the same bits, or, of more of them than the kernel gives those
//     for (GpuKernel::same_bits_to), are within the tolerance too.
// After an error of the device itself the result is `lost`.
CaseResult run_case(const GpuKernel& kernel, const OpCase& c, const CaseBuilder::Options& options, Accelerator& device);

// Every case of the kernel's op that it takes, dense and as slices of wider tensors; none after the device was lost.
SweepResult sweep(const GpuKernel& kernel, Accelerator& device, int64_t most_work = INT64_MAX);

}  // namespace consonant
