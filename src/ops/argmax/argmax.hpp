// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/node.hpp"

namespace consonant {

// The column of each row's greatest number: x [..., row, n] float32, n at least 1 -> [..., row] i32. Of equal ones (-0
// equals 0) the lowest column, on every device. NaNs are passed over; a row of nothing else gives 0.
Tensor argmax(Tensor x, Location at = Location::current());

}  // namespace consonant
