// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/gpu_kernel.hpp"

namespace consonant::emu32 {

enum class Fault {
  none,
  wrong_factor,
  skips_an_element,
  sees_the_batch,
  captures_data,
  passes_scratch,
  passes_output,
  passes_everything,  // past what it was given a pointer to
  writes_input,
};

// Multiplies as scale's first cases do, but for one fault that a sweep must see.
GpuKernel faulty_kernel(Fault fault);

}  // namespace consonant::emu32
