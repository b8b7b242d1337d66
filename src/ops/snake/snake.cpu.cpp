// SPDX-License-Identifier: Apache-2.0
// sin^2 has the period pi: u less the nearest multiple of pi is at most pi / 2, where the sine is an odd polynomial of
// least greatest error. What rounding u = exp(a) x takes away is given back to that difference: vocoders have some
// thirty of these one after another, each of which makes errors larger. Exponentials are taken once a chunk.
#include <algorithm>
#include <cmath>

#include "ops/work.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/snake/snake.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: compiled once a target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The square of sin(u + rest). Its sign doesn't matter, so neither does the parity of the multiple of pi.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sine_squared(D d, V u, V rest) {
  const V k = hn::Round(hn::Mul(u, hn::Set(d, 0.318309886f)));
  V t = hn::NegMulAdd(k, hn::Set(d, 3.140625f), u);
  t = hn::NegMulAdd(k, hn::Set(d, 9.67025756835937500e-4f), t);
  t = hn::Add(hn::NegMulAdd(k, hn::Set(d, 6.27711414e-7f), t), rest);
  const V s = hn::Mul(t, t);
  V p = hn::Set(d, -2.3907361423880502e-08f);
  p = hn::MulAdd(p, s, hn::Set(d, 2.7526518806553213e-06f));
  p = hn::MulAdd(p, s, hn::Set(d, -1.9840891763964e-04f));
  p = hn::MulAdd(p, s, hn::Set(d, 8.333330973982811e-03f));
  p = hn::MulAdd(p, s, hn::Set(d, -1.666666716337204e-01f));
  const V sine = hn::MulAdd(hn::Mul(p, s), t, t);
  return hn::Mul(sine, sine);
}

// f v less what it is rounded to, u. Without a fused multiplication from halves of 12 bits, whose products are exact.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V lost_bits(D d, V f, V v, V u) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulSub(f, v, u);
#else
  const auto upper = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<D>(), 0xFFFFF000u));
  const V f1 = hn::And(f, upper), f2 = hn::Sub(f, f1), v1 = hn::And(v, upper), v2 = hn::Sub(v, v1);
  const V most = hn::Add(hn::Sub(hn::Mul(f1, v1), u), hn::Mul(f1, v2));
  return hn::Add(hn::Add(most, hn::Mul(f2, v1)), hn::Mul(f2, v2));
#endif
}

template <class D>
HWY_INLINE void snake_vector(D d, const float* x, const float* frequency, const float* rest, const float* share,
                             float* y) {
  const auto v = hn::LoadU(d, x), f = hn::LoadU(d, frequency), u = hn::Mul(f, v);
  const auto lost = hn::MulAdd(hn::LoadU(d, rest), v, lost_bits(d, f, v, u));
  hn::StoreU(hn::MulAdd(hn::LoadU(d, share), sine_squared(d, u, lost), v), d, y);
}

// A channel's exp(a) is frequency + rest.
void snake_row(const float* x, const float* frequency, const float* rest, const float* share, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) snake_vector(d, x + i, frequency + i, rest + i, share + i, y + i);
  if (i == n) return;
  // The rest goes through a whole vector as well, so that no element is computed otherwise.
  HWY_ALIGN float part[5][hn::MaxLanes(d)] = {};
  std::copy(x + i, x + n, part[0]);
  std::copy(frequency + i, frequency + n, part[1]);
  std::copy(rest + i, rest + n, part[2]);
  std::copy(share + i, share + n, part[3]);
  snake_vector(d, part[0], part[1], part[2], part[3], part[4]);
  std::copy(part[4], part[4] + (n - i), y + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(snake_row);

namespace {

constexpr int64_t chunk_elements = 65536;

Work work(const Args& args) {
  return {RowChunks(args.out[0], chunk_elements).count(), 3 * args.out[0].last() * static_cast<int64_t>(sizeof(float))};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t n = y.last();
  auto *frequency = reinterpret_cast<float*>(scratch), *rest = frequency + n, *share = rest + n;
  for (int64_t i = 0; i < n; ++i) {
    const double f = std::exp(double{args.in[1].as<float>()[i]});
    frequency[i] = static_cast<float>(f), rest[i] = static_cast<float>(f - frequency[i]);
    share[i] = static_cast<float>(1 / (std::exp(double{args.in[2].as<float>()[i]}) + 1e-9));
  }
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    HWY_DYNAMIC_DISPATCH(snake_row)(x.row<float>(r), frequency, rest, share, y.row<float>(r), n);
}

}  // namespace

extern const Kernel snake_cpu = {DeviceKind::cpu, Op::snake, wants_float_rows, work, run};

}  // namespace consonant
#endif
