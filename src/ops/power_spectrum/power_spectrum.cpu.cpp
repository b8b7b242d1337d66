// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/power_spectrum/power_spectrum.cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target: compiled once a target.
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "ops/power_spectrum/fourier.hpp"
#include "ops/power_spectrum/power_spectrum.hpp"
#include "ops/work.hpp"

HWY_BEFORE_NAMESPACE();
namespace consonant {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// A lane is a frame, and eight frames go together, whatever the width of the vectors.
using Doubles = hn::CappedTag<double, 8>;
constexpr int64_t frames_together = 8;

// One stage for one vector of frames: re and im [n / 2][frames_together].
// The numbers come as m = n / 2 / (length radix) groups: in [radix][m][length] -> out [m][radix][length].
HWY_INLINE void run_stage(const FourierPlan::Stage& stage, int64_t half, const double* re, const double* im,
                          double* out_re, double* out_im) {
  const Doubles d;
  const int64_t radix = stage.radix, length = stage.length, groups = half / (radix * length);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t j = 0; j < length; ++j)
      for (int64_t k = 0; k < radix; ++k) {
        const auto factors = static_cast<size_t>((j * radix + k) * radix);
        auto sum_re = hn::Zero(d), sum_im = hn::Zero(d);
        for (int64_t p = 0; p < radix; ++p) {
          const auto fr = hn::Set(d, stage.factor_re[factors + static_cast<size_t>(p)]),
                     fi = hn::Set(d, stage.factor_im[factors + static_cast<size_t>(p)]);
          const int64_t at = ((p * groups + g) * length + j) * frames_together;
          const auto x = hn::LoadU(d, re + at), y = hn::LoadU(d, im + at);
          sum_re = hn::NegMulAdd(y, fi, hn::MulAdd(x, fr, sum_re));
          sum_im = hn::MulAdd(y, fr, hn::MulAdd(x, fi, sum_im));
        }
        const int64_t to = ((g * radix + k) * length + j) * frames_together;
        hn::StoreU(sum_re, d, out_re + to);
        hn::StoreU(sum_im, d, out_im + to);
      }
}

// The spectrum of z[j] = x[2 j] + i x[2 j + 1] taken apart: X[k] = (Z[k] + Z*[h - k]) / 2 - i w^k (Z[k] - Z*[h - k])
// / 2.
HWY_INLINE void split_power(const FourierPlan& plan, const double* re, const double* im, double* power) {
  const Doubles d;
  const int64_t half = plan.n / 2;
  const auto part = hn::Set(d, 0.5);
  for (int64_t k = 0; k <= half; ++k) {
    const int64_t a = k % half * frames_together, b = (half - k) % half * frames_together;
    const auto ar = hn::LoadU(d, re + a), ai = hn::LoadU(d, im + a), br = hn::LoadU(d, re + b),
               bi = hn::Neg(hn::LoadU(d, im + b));
    const auto even_r = hn::Mul(part, hn::Add(ar, br)), even_i = hn::Mul(part, hn::Add(ai, bi));
    // odd = -i (Z[k] - Z*[h - k]) / 2
    const auto odd_r = hn::Mul(part, hn::Sub(ai, bi)), odd_i = hn::Mul(part, hn::Sub(br, ar));
    const auto wr = hn::Set(d, plan.split_re[static_cast<size_t>(k)]),
               wi = hn::Set(d, plan.split_im[static_cast<size_t>(k)]);
    const auto x = hn::NegMulAdd(odd_i, wi, hn::MulAdd(odd_r, wr, even_r));
    const auto y = hn::MulAdd(odd_i, wr, hn::MulAdd(odd_r, wi, even_i));
    hn::StoreU(hn::MulAdd(x, x, hn::Mul(y, y)), d, power + k * frames_together);
  }
}

// Transforms eight frames whose windowed samples are at re (even ones) and im (odd ones); the powers come to `power`.
void transform(const FourierPlan& plan, double* re, double* im, double* other_re, double* other_im, double* power) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Doubles()));
  for (int64_t lane = 0; lane < frames_together; lane += lanes) {
    double *from_re = re + lane, *from_im = im + lane, *to_re = other_re + lane, *to_im = other_im + lane;
    for (const FourierPlan::Stage& stage : plan.stages) {
      run_stage(stage, plan.n / 2, from_re, from_im, to_re, to_im);
      std::swap(from_re, to_re), std::swap(from_im, to_im);
    }
    split_power(plan, from_re, from_im, power + lane);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace consonant
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace consonant {

HWY_EXPORT(transform);

namespace {

constexpr int64_t frames_together = 8, frames_a_chunk = 64;

Work work(const Args& args) {
  const int64_t n = args.in[1].shape[0];
  return {ceil_div(args.out[0].shape[0], frames_a_chunk), (2 * n + n / 2 + 1) * frames_together * 8};
}

void run(const Args& args, int64_t chunk, std::byte* scratch) {
  const float *x = args.in[0].as<float>(), *window = args.in[1].as<float>();
  const View& y = args.out[0];
  const int64_t n = args.in[1].shape[0], half = n / 2, hop = args.attr<PowerSpectrumAttr>().hop;
  const FourierPlan& plan = fourier_plan(n);
  auto* re = reinterpret_cast<double*>(scratch);
  double *im = re + half * frames_together, *other_re = im + half * frames_together,
         *other_im = other_re + half * frames_together, *power = other_im + half * frames_together;
  const int64_t last = std::min(y.shape[0], (chunk + 1) * frames_a_chunk);
  for (int64_t t = chunk * frames_a_chunk; t < last; t += frames_together) {
    for (int64_t f = 0; f < frames_together; ++f) {
      const float* from = x + std::min(t + f, last - 1) * hop;
      for (int64_t i = 0; i < half; ++i) {
        re[i * frames_together + f] = double{from[2 * i]} * window[2 * i];
        im[i * frames_together + f] = double{from[2 * i + 1]} * window[2 * i + 1];
      }
    }
    HWY_DYNAMIC_DISPATCH(transform)(plan, re, im, other_re, other_im, power);
    for (int64_t f = 0; t + f < last && f < frames_together; ++f)
      for (int64_t k = 0; k <= half; ++k) y.row<float>(t + f)[k] = static_cast<float>(power[k * frames_together + f]);
  }
}

}  // namespace

extern const Kernel power_spectrum_cpu = {DeviceKind::cpu, Op::power_spectrum, wants_float_rows, work, run};

}  // namespace consonant
#endif
