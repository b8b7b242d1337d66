// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace consonant {

// Bytes that a new allocation can use without swapping: what the kernel says is available, or what the control group
// leaves if that is less. -1 if nothing says.
int64_t available_memory();

// The greatest resident size of this process so far, in bytes (VmHWM).
int64_t peak_memory();

// The resident size of this process now; -1 if nothing says.
int64_t resident_memory();

}  // namespace consonant
