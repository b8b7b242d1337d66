// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernel.hpp"
#include "ops/quantize/quantize.hpp"
#include "ops/work.hpp"
#include "tensor/activations.hpp"

namespace consonant {

namespace {

// x / scale to the nearest whole number, as far as 8 bits reach (a scale near zero is coarse).
int8_t nearest(float x, float scale) {
  return static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, scale > 0 ? std::nearbyint(x / scale) : 0)));
}

// A block with a NaN or an infinity has no numbers: its scale and sums are NaN, so that what it meets is NaN too.
void quantize_block(const float* x, int8_t* q, int8_t* rest, float* scale, float* sum) {
  float greatest = 0;
  bool finite = true;
  for (int i = 0; i < 32; ++i) {
    finite = finite && std::isfinite(x[i]);
    greatest = std::max(greatest, std::fabs(x[i]));
  }
  *scale = finite ? greatest / 127 : std::numeric_limits<float>::quiet_NaN();
  for (int h = 0; h < 2; ++h) {
    int total = 0;  // in units of scale, or of scale / 256
    for (int i = 16 * h; i < 16 * h + 16; ++i) {
      q[i] = nearest(x[i], *scale);
      total += rest ? 256 * q[i] : q[i];
      if (rest) total += rest[i] = nearest(static_cast<float>(x[i] - double{*scale} * q[i]), *scale / 256);
    }
    sum[h] = (rest ? *scale / 256 : *scale) * static_cast<float>(total);
  }
}

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t k = x.last();
  const int parts = activation_parts(y.type);
  for (int64_t r = 0; r < x.rows(); ++r) {
    std::byte* row = y.data + ActivationRow::bytes(y.row_offset(r), parts);
    auto* q = reinterpret_cast<int8_t*>(row);
    auto *scale = reinterpret_cast<float*>(row + parts * k), *sum = scale + k / 32;
    for (int64_t b = 0; b < k / 32; ++b)
      quantize_block(x.row<float>(r) + 32 * b, q + 32 * b, parts == 2 ? q + k + 32 * b : nullptr, scale + b,
                     sum + 2 * b);
  }
}

Refusal can_run(const Node& node) {
  const Tensor& x = node.inputs[0];
  const auto last = static_cast<size_t>(x.shape().rank() - 1);
  if (x.node->outputs[static_cast<size_t>(x.output)].strides[last] != 1) return {"the rows of x aren't contiguous"};
  return {};
}

}  // namespace

extern const Kernel quantize_ref = {DeviceKind::reference, Op::quantize, can_run, whole, run};

}  // namespace consonant
