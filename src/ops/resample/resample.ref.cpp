// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ops/resample/filter.hpp"
#include "ops/resample/resample.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

// The filter at a time in samples of the lower rate, by its formula.
double impulse(double u) {
  constexpr double pi = 3.14159265358979323846;
  const double part = u / ResampleFilter::half_width, angle = pi * ResampleFilter::edge * u;
  if (std::abs(part) >= 1) return 0;
  const double window = std::cyl_bessel_i(0, ResampleFilter::beta * std::sqrt(1 - part * part)) /
                        std::cyl_bessel_i(0, ResampleFilter::beta);
  return ResampleFilter::edge * window * (u == 0 ? 1 : std::sin(angle) / angle);
}

void run(const Args& args, int64_t, std::byte*) {
  const View &x = args.in[0], &y = args.out[0];
  const double in = static_cast<double>(args.attr<ResampleAttr>().rate_in),
               out = static_cast<double>(args.attr<ResampleAttr>().rate_out);
  const double scale = std::min(1.0, out / in), reach = ResampleFilter::half_width / scale;
  for (int64_t r = 0; r < y.rows(); ++r)
    for (int64_t m = 0; m < y.last(); ++m) {
      const double t = static_cast<double>(m) * in / out;
      const auto first = std::max<int64_t>(0, static_cast<int64_t>(std::ceil(t - reach)));
      const auto last = std::min<int64_t>(x.last() - 1, static_cast<int64_t>(std::floor(t + reach)));
      double sum = 0;
      for (int64_t k = first; k <= last; ++k)
        sum += x.row<float>(r)[k] * scale * impulse(scale * (t - static_cast<double>(k)));
      y.row<float>(r)[m] = static_cast<float>(sum);
    }
}

}  // namespace

extern const Kernel resample_ref = {DeviceKind::reference, Op::resample, wants_float_rows, whole, run};

}  // namespace consonant
