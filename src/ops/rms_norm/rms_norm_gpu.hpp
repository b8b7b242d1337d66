// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/gpu.hpp"

namespace consonant::GPU_BUILD {

// Threads that share a row of n numbers: what decides the order of its sum. Latency bounds a single long row: many
// threads, few rounds each.
constexpr int rms_norm_threads(int64_t n) { return n <= 256 ? 64 : n <= 1024 ? 256 : 1024; }

}  // namespace consonant::GPU_BUILD
