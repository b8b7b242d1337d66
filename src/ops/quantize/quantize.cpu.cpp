// SPDX-License-Identifier: Apache-2.0
#include "ops/quantize/quantize.hpp"

#include "ops/work.hpp"
#include "tensor/activations.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/quantize/quantize.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: compiled once a target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
constexpr int lanes = static_cast<int>(hn::MaxLanes(Floats()));

// Greatest magnitude of 32 floats, by their bits: as integers NaNs are greater than infinity, infinity than numbers.
HWY_INLINE float greatest_magnitude(const float* x) {
  const Ints d;
  auto greatest = hn::Zero(d);
  for (int i = 0; i < 32; i += lanes) greatest = hn::Max(greatest, hn::BitCast(d, hn::Abs(hn::LoadU(Floats(), x + i))));
  const int32_t bits = hn::GetLane(hn::MaxOfLanes(d, greatest));
  float magnitude;
  std::memcpy(&magnitude, &bits, sizeof magnitude);
  return bits < 0x7F800000 ? magnitude : std::numeric_limits<float>::quiet_NaN();
}

// `rest`, unless null, becomes what is left of x.
void quantize_row(const float* x, int64_t k, std::byte* row, float* rest) {
  auto* q = reinterpret_cast<int8_t*>(row);
  auto *scale = reinterpret_cast<float*>(row + k), *sum = scale + k / 32;
  const Floats d;
  const Ints di;
  for (int64_t b = 0; b < k / 32; ++b, x += 32, q += 32) {
    const float magnitude = greatest_magnitude(x);
    scale[b] = magnitude / 127;
    int32_t totals[2] = {};
    if (scale[b] > 0) {
      const auto divisor = hn::Set(d, scale[b]);
      for (int h = 0; h < 2; ++h) {
        auto total = hn::Zero(di);
        for (int i = 16 * h; i < 16 * h + 16; i += lanes) {
          const auto nearest = hn::NearestInt(hn::Div(hn::LoadU(d, x + i), divisor));
          const auto near = hn::Min(hn::Max(nearest, hn::Set(di, -127)), hn::Set(di, 127));
          hn::StoreU(hn::DemoteTo(hn::Rebind<int8_t, Ints>(), near), hn::Rebind<int8_t, Ints>(), q + i);
          total = hn::Add(total, near);
          if (rest)
            hn::StoreU(hn::NegMulAdd(hn::ConvertTo(d, near), divisor, hn::LoadU(d, x + i)), d, rest + 32 * b + i);
        }
        totals[h] = hn::GetLane(hn::SumOfLanes(di, total));
      }
    } else {
      std::memset(q, 0, 32);
      if (rest) std::memcpy(rest + 32 * b, x, 32 * sizeof(float));  // zeros, or the NaN that the scale has
    }
    for (int h = 0; h < 2; ++h) sum[2 * b + h] = scale[b] * static_cast<float>(totals[h]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(quantize_row);

namespace {

constexpr int64_t chunk_elements = 16384;

Refusal can_run(const Node& node) {
  const Tensor& x = node.inputs[0];
  if (x.node->outputs[static_cast<size_t>(x.output)].strides[1] != 1) return {"the rows of x aren't contiguous"};
  return {};
}

Work work(const Args& args) {
  return {RowChunks(args.out[0], chunk_elements).count(), args.out[0].last() * static_cast<int64_t>(sizeof(float))};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &y = args.out[0];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    std::byte* row = y.data + r * row_bytes(y.type, y.strides[0]);
    auto* rest = y.type == DType::q16_x ? reinterpret_cast<float*>(scratch) : nullptr;
    HWY_DYNAMIC_DISPATCH(quantize_row)(x.row<float>(r), x.last(), row, rest);
    if (rest) HWY_DYNAMIC_DISPATCH(quantize_row)(rest, x.last(), row + ActivationRow::bytes(x.last()), nullptr);
  }
}

}  // namespace

extern const Kernel quantize_cpu = {DeviceKind::cpu, Op::quantize, can_run, work, run};

}  // namespace consonant
#endif
