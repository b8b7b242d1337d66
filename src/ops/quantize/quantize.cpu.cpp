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

HWY_INLINE hn::Vec<Ints> nearest(hn::Vec<Floats> x) {
  return hn::Min(hn::Max(hn::NearestInt(x), hn::Set(Ints(), -127)), hn::Set(Ints(), 127));
}

template <int parts>
void quantize_row(const float* x, int64_t k, std::byte* row) {
  const Floats d;
  const Ints di;
  const hn::Rebind<int8_t, Ints> bytes;
  auto* q = reinterpret_cast<int8_t*>(row);
  auto *scale = reinterpret_cast<float*>(row + parts * k), *sum = scale + k / 32;
  for (int64_t b = 0; b < k / 32; ++b, x += 32, q += 32) {
    const float magnitude = greatest_magnitude(x);
    scale[b] = magnitude / 127;
    int32_t totals[2] = {};
    if (scale[b] > 0) {
      const auto divisor = hn::Set(d, scale[b]), small_divisor = hn::Set(d, scale[b] / 256);
      for (int h = 0; h < 2; ++h) {
        auto total = hn::Zero(di);
        for (int i = 16 * h; i < 16 * h + 16; i += lanes) {
          const auto v = hn::LoadU(d, x + i);
          const auto near = nearest(hn::Div(v, divisor));
          hn::StoreU(hn::DemoteTo(bytes, near), bytes, q + i);
          if constexpr (parts == 2) {
            // A scale so small that its 256th is zero leaves no rest to speak of.
            const auto left = hn::NegMulAdd(hn::ConvertTo(d, near), divisor, v);
            const auto ratio = hn::IfThenElseZero(hn::Gt(small_divisor, hn::Zero(d)), hn::Div(left, small_divisor));
            const auto rest = nearest(ratio);
            hn::StoreU(hn::DemoteTo(bytes, rest), bytes, q + k + i);
            total = hn::Add(total, hn::Add(hn::ShiftLeft<8>(near), rest));
          } else {
            total = hn::Add(total, near);
          }
        }
        totals[h] = hn::GetLane(hn::SumOfLanes(di, total));
      }
    } else {
      std::memset(q, 0, 32);
      if constexpr (parts == 2) std::memset(q + k, 0, 32);
    }
    const float unit = parts == 2 ? scale[b] / 256 : scale[b];
    for (int h = 0; h < 2; ++h) sum[2 * b + h] = unit * static_cast<float>(totals[h]);
  }
}

void quantize_8(const float* x, int64_t k, std::byte* row) { quantize_row<1>(x, k, row); }
void quantize_16(const float* x, int64_t k, std::byte* row) { quantize_row<2>(x, k, row); }

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(quantize_8);
HWY_EXPORT(quantize_16);

namespace {

constexpr int64_t chunk_elements = 16384;

Refusal can_run(const Node& node) {
  const Tensor& x = node.inputs[0];
  const auto last = static_cast<size_t>(x.shape().rank() - 1);
  if (x.node->outputs[static_cast<size_t>(x.output)].strides[last] != 1) return {"the rows of x aren't contiguous"};
  return {};
}

Work work(const Args& args) { return {RowChunks(args.out[0], chunk_elements).count(), 0}; }

void run(const Args& args, int64_t chunk, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r) {
    std::byte* row = y.data + ActivationRow::bytes(y.row_offset(r), activation_parts(y.type));
    if (y.type == DType::q16_x)
      HWY_DYNAMIC_DISPATCH(quantize_16)(x.row<float>(r), x.last(), row);
    else
      HWY_DYNAMIC_DISPATCH(quantize_8)(x.row<float>(r), x.last(), row);
  }
}

}  // namespace

extern const Kernel quantize_cpu = {DeviceKind::cpu, Op::quantize, can_run, work, run};

}  // namespace consonant
#endif
