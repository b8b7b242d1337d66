// SPDX-License-Identifier: Apache-2.0
#include "ops/resample/resample.hpp"

#include <fmt/format.h>

#include "ops/op.hpp"

namespace consonant {

Tensor resample(Tensor x, int64_t rate_in, int64_t rate_out, Location at) {
  constexpr int64_t fastest = 10'000'000;
  const Shape& shape = x.shape();
  const bool rates = rate_in > 0 && rate_out > 0 && rate_in <= fastest && rate_out <= fastest;
  const bool counts_samples = shape.rank() == 1 && shape.axis() != Axis::fixed;
  if (shape.rank() == 0 || counts_samples || !rates)
    shape_error(
        "resample",
        fmt::format("x [..., n] with a fixed n, and rates from 1 to {}, not {} and {}", fastest, rate_in, rate_out),
        {x}, at);
  if (rate_in == rate_out) return x;
  const int64_t n = shape.last();
  const int64_t samples = n / rate_in * rate_out + (n % rate_in * rate_out + rate_in / 2) / rate_in;
  return {make_node(id(Op::resample), "resample", {x}, {dense(DType::f32, shape.with_last(samples))},
                    ResampleAttr{rate_in, rate_out}, at),
          0};
}

}  // namespace consonant
