// SPDX-License-Identifier: Apache-2.0
#include "ops/power_spectrum/power_spectrum.hpp"

#include "ops/op.hpp"

namespace consonant {

Tensor power_spectrum(Tensor x, Tensor window, int64_t hop, Location at) {
  const Shape &s = x.shape(), &w = window.shape();
  if (s.rank() != 1 || s.axis() != Axis::fixed || w.rank() != 1 || w[0] < 2 || w[0] % 2 != 0 || s[0] < w[0] || hop < 1)
    shape_error("power_spectrum", "x [sample], window [n] of an even n up to the samples, and a hop of 1 or more",
                {x, window}, at);
  return {make_node(id(Op::power_spectrum), "power_spectrum", {x, window},
                    {dense(DType::f32, {(s[0] - w[0]) / hop + 1, w[0] / 2 + 1})}, PowerSpectrumAttr{hop}, at),
          0};
}

}  // namespace consonant
