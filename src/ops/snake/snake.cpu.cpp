// SPDX-License-Identifier: Apache-2.0
// sin^2 u = (1 - cos 2u) / 2, and cos^2 has the period pi: u less the nearest multiple of pi, in two parts, is at most
// pi / 2, where the sine is an odd polynomial. One division a channel, before the rows.
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

// The square of sin(u). Its sign doesn't matter, so neither does the parity of the multiple of pi.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V sine_squared(D d, V u) {
  const V k = hn::Round(hn::Mul(u, hn::Set(d, 0.318309886f)));
  V t = hn::NegMulAdd(k, hn::Set(d, 3.140625f), u);
  t = hn::NegMulAdd(k, hn::Set(d, 9.67025756835937500e-4f), t);
  t = hn::NegMulAdd(k, hn::Set(d, 6.27711414e-7f), t);
  const V s = hn::Mul(t, t);
  V p = hn::Set(d, 2.6083159809786593541503e-06f);
  p = hn::MulAdd(p, s, hn::Set(d, -1.981069071916863322258e-04f));
  p = hn::MulAdd(p, s, hn::Set(d, 8.33307858556509017944336e-03f));
  p = hn::MulAdd(p, s, hn::Set(d, -1.66666597127914428710938e-01f));
  const V sine = hn::MulAdd(hn::Mul(p, s), t, t);
  return hn::Mul(sine, sine);
}

template <class D>
HWY_INLINE void snake_vector(D d, const float* x, const float* frequency, const float* share, float* y) {
  const auto v = hn::LoadU(d, x);
  const auto wave = sine_squared(d, hn::Mul(hn::LoadU(d, frequency), v));
  hn::StoreU(hn::MulAdd(hn::LoadU(d, share), wave, v), d, y);
}

void snake_row(const float* x, const float* frequency, const float* share, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) snake_vector(d, x + i, frequency + i, share + i, y + i);
  if (i == n) return;
  // The rest goes through a whole vector as well, so that no element is computed otherwise.
  HWY_ALIGN float part[4][hn::MaxLanes(d)] = {};
  std::copy(x + i, x + n, part[0]);
  std::copy(frequency + i, frequency + n, part[1]);
  std::copy(share + i, share + n, part[2]);
  snake_vector(d, part[0], part[1], part[2], part[3]);
  std::copy(part[3], part[3] + (n - i), y + i);
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
  return {RowChunks(args.out[0], chunk_elements).count(), 2 * args.out[0].last() * static_cast<int64_t>(sizeof(float))};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const View &x = args.in[0], &y = args.out[0];
  const int64_t n = y.last();
  auto *frequency = reinterpret_cast<float*>(scratch), *share = frequency + n;
  for (int64_t i = 0; i < n; ++i) {
    frequency[i] = std::exp(args.in[1].as<float>()[i]);
    share[i] = 1 / (std::exp(args.in[2].as<float>()[i]) + 1e-9f);
  }
  const RowChunks chunks(y, chunk_elements);
  for (int64_t r = chunks.first(chunk); r < chunks.last(chunk); ++r)
    HWY_DYNAMIC_DISPATCH(snake_row)(x.row<float>(r), frequency, share, y.row<float>(r), n);
}

}  // namespace

extern const Kernel snake_cpu = {DeviceKind::cpu, Op::snake, wants_float_rows, work, run};

}  // namespace consonant
#endif
