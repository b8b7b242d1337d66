// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "ops/kernel.hpp"
#include "ops/quantize/quantize.hpp"
#include "ops/work.hpp"
#include "tensor/activations.hpp"

namespace consonant {

namespace {

// A block with a NaN or an infinity has no numbers: its scale and sums are NaN, so that what it meets is NaN too.
void quantize_block(const float* x, int8_t* q, float* scale, float* sum) {
  float greatest = 0;
  bool finite = true;
  for (int i = 0; i < 32; ++i) {
    finite = finite && std::isfinite(x[i]);
    greatest = std::max(greatest, std::fabs(x[i]));
  }
  *scale = finite ? greatest / 127 : std::numeric_limits<float>::quiet_NaN();
  for (int h = 0; h < 2; ++h) {
    int total = 0;
    for (int i = 16 * h; i < 16 * h + 16; ++i) {
      const float ratio = *scale > 0 ? std::nearbyint(x[i] / *scale) : 0;
      q[i] = static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, ratio)));  // a scale near zero is coarse
      total += q[i];
    }
    sum[h] = *scale * static_cast<float>(total);
  }
}

void quantize_row(const float* x, int64_t k, std::byte* row) {
  auto* q = reinterpret_cast<int8_t*>(row);
  auto *scale = reinterpret_cast<float*>(row + k), *sum = scale + k / 32;
  for (int64_t b = 0; b < k / 32; ++b) quantize_block(x + 32 * b, q + 32 * b, scale + b, sum + 2 * b);
}

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t k = x.last();
  for (int64_t r = 0; r < x.rows(); ++r) {
    std::byte* row = y.data + r * row_bytes(y.type, y.strides[0]);
    quantize_row(x.row<float>(r), k, row);
    if (y.type == DType::q8_x) continue;
    std::vector<float> rest(x.row<float>(r), x.row<float>(r) + k);
    const ActivationRow first = ActivationRow::at(row, k);
    for (int64_t i = 0; i < k; ++i)
      rest[static_cast<size_t>(i)] =
          static_cast<float>(rest[static_cast<size_t>(i)] - double{first.scale[i / 32]} * first.q[i]);
    quantize_row(rest.data(), k, row + ActivationRow::bytes(k));
  }
}

Refusal can_run(const Node& node) {
  const Tensor& x = node.inputs[0];
  if (x.node->outputs[static_cast<size_t>(x.output)].strides[1] != 1) return {"the rows of x aren't contiguous"};
  return {};
}

}  // namespace

extern const Kernel quantize_ref = {DeviceKind::reference, Op::quantize, can_run, whole, run};

}  // namespace consonant
