// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/patches/patches.hpp"

namespace consonant {

struct PadRowsAttr {
  int64_t before = 0, after = 0;
  Edge edge = Edge::zeros;
};

// x [row, n] float32 with rows of zeros, or as `edge` has it, before and after: [before + row + after, n].
Tensor pad_rows(Tensor x, int64_t before, int64_t after, Location at = Location::current());
Tensor pad_rows(Tensor x, int64_t before, int64_t after, Edge edge, Location at = Location::current());

// One-dimensional convolution over rows: x [time, channels], w [outputs, kernel * channels] with tap k of channel c at
// k * channels + c, padding zeros on both sides -> [(time + 2 padding - kernel) / stride + 1, outputs]. It is the
// product of w with overlapping views of the padded rows.
Tensor conv1d(Tensor x, Tensor w, int64_t kernel, int64_t stride, int64_t padding, Location at = Location::current());

}  // namespace consonant
