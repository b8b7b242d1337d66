// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "ops/power_spectrum/power_spectrum.hpp"
#include "ops/work.hpp"

namespace consonant {

namespace {

void run(const Args& args, int64_t, std::byte*) {
  const float *x = args.in[0].as<float>(), *window = args.in[1].as<float>();
  const View& y = args.out[0];
  const int64_t n = args.in[1].shape[0], hop = args.attr<PowerSpectrumAttr>().hop;
  std::vector<double> cosine(static_cast<size_t>(n)), sine(cosine);
  for (int64_t i = 0; i < n; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n);
    cosine[static_cast<size_t>(i)] = std::cos(angle), sine[static_cast<size_t>(i)] = std::sin(angle);
  }
  for (int64_t t = 0; t < y.shape[0]; ++t)
    for (int64_t k = 0; k < y.shape[1]; ++k) {
      double re = 0, im = 0;
      for (int64_t i = 0; i < n; ++i) {
        const double v = double{x[t * hop + i]} * window[i];
        re += v * cosine[static_cast<size_t>(i * k % n)], im -= v * sine[static_cast<size_t>(i * k % n)];
      }
      y.row<float>(t)[k] = static_cast<float>(re * re + im * im);
    }
}

}  // namespace

extern const Kernel power_spectrum_ref = {DeviceKind::reference, Op::power_spectrum, wants_float_rows, whole, run};

}  // namespace consonant
