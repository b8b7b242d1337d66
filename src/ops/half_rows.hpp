// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace consonant {

// y[i] = x[i] in float16, rounded to nearest even, with the widest vectors of this processor.
void to_halves(const float* x, uint16_t* y, int64_t n);

// The other way, exact.
void from_halves(const uint16_t* x, float* y, int64_t n);

}  // namespace consonant
