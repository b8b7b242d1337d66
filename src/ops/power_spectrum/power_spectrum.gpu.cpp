// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "ops/gpu_rows.hpp"
#include "ops/power_spectrum/fourier.hpp"
#include "ops/power_spectrum/power_spectrum.hpp"

namespace consonant::GPU_BUILD {

namespace {

constexpr int block_threads = 256;
constexpr int fine_roots = 64, greatest_window = fine_roots * fine_roots, most_stages = 12;

// exp(-2 pi i m / n) is fine[m % 64] * coarse[m / 64]: few enough numbers for a launch's arguments.
struct Roots {
  double fine_re[fine_roots], fine_im[fine_roots], coarse_re[fine_roots], coarse_im[fine_roots];
};
struct Radices {
  int count, radix[most_stages];
};

// One stage of a transform of half n complex numbers, a thread a result; see FourierPlan. In shared memory, as `length`
// transforms of each group: in [radix][groups][length] -> out [groups][radix][length].
GPU_FN void run_stage(int n, int radix, int length, gpu::Shared<double> root_re, gpu::Shared<double> root_im,
                      gpu::Shared<double> re, gpu::Shared<double> im, gpu::Shared<double> out_re,
                      gpu::Shared<double> out_im) {
  const int half = n / 2, groups = half / (radix * length);
  for (int at = gpu::thread(); at < half; at += gpu::threads()) {
    const int rest = at / length, j = at - rest * length, g = rest / radix, k = rest - g * radix;
    const int turn = (j + length * k) * 2 * groups;  // below n
    double sum_re = 0, sum_im = 0;
    for (int p = 0, root = 0, from = g * length + j; p < radix; ++p, from += groups * length) {
      const double fr = root_re[root], fi = root_im[root], x = re[from], y = im[from];
      sum_re += x * fr - y * fi;
      sum_im += x * fi + y * fr;
      root += turn;
      if (root >= n) root -= n;
    }
    out_re[at] = sum_re;
    out_im[at] = sum_im;
  }
}

// A block a frame. In float64 as on the CPU: a quiet band beside a loud one keeps its digits. Of n numbers as n / 2
// complex ones: shared memory is what bounds it, about half n times the sum of the radices, 32 bytes each.
GPU_KERNEL void power_spectrum(gpu::Ptr<const float> x, gpu::Ptr<const float> window, int64_t hop, int n, Roots roots,
                               Radices radices, Rows<float> y) {
  GPU_DYNAMIC_SHARED(double, memory);
  const int half = n / 2;
  const auto root_re = memory, root_im = memory + n;
  auto re = memory + 2 * n, im = re + half, other_re = im + half, other_im = other_re + half;
  for (int m = gpu::thread(); m < n; m += gpu::threads()) {
    const int f = m % fine_roots, c = m / fine_roots;
    root_re[m] = roots.fine_re[f] * roots.coarse_re[c] - roots.fine_im[f] * roots.coarse_im[c];
    root_im[m] = roots.fine_re[f] * roots.coarse_im[c] + roots.fine_im[f] * roots.coarse_re[c];
  }
  const auto from = x + gpu::block() * hop;
  for (int i = gpu::thread(); i < half; i += gpu::threads()) {
    re[i] = static_cast<double>(from[2 * i]) * window[2 * i];
    im[i] = static_cast<double>(from[2 * i + 1]) * window[2 * i + 1];
  }
  for (int s = 0, length = 1; s < radices.count; length *= radices.radix[s++]) {
    gpu::sync();
    run_stage(n, radices.radix[s], length, root_re, root_im, re, im, other_re, other_im);
    const auto last_re = re, last_im = im;
    re = other_re, im = other_im, other_re = last_re, other_im = last_im;
  }
  gpu::sync();
  // The spectrum of z[j] = x[2 j] + i x[2 j + 1] taken apart:
  // X[k] = (Z[k] + Z*[half - k]) / 2 - i w^k (Z[k] - Z*[half - k]) / 2
  const auto to = y.row(gpu::block());
  for (int k = gpu::thread(); k <= half; k += gpu::threads()) {
    const int a = k < half ? k : 0, b = k > 0 ? half - k : 0;
    const double ar = re[a], ai = im[a], br = re[b], bi = -im[b];
    const double odd_re = 0.5 * (ai - bi), odd_im = 0.5 * (br - ar), wr = root_re[k], wi = root_im[k];
    const double u = 0.5 * (ar + br) + odd_re * wr - odd_im * wi, v = 0.5 * (ai + bi) + odd_re * wi + odd_im * wr;
    to[k] = static_cast<float>(u * u + v * v);
  }
}

int64_t shared_bytes(int64_t n) { return 4 * n * static_cast<int64_t>(sizeof(double)); }

Refusal can_run(const Node& node, const Limits& limits) {
  const int64_t n = node.inputs[1].shape()[0];
  if (n > greatest_window) return {fmt::format("a window of {} is longer than {}", n, greatest_window)};
  if (shared_bytes(n) > limits.shared_bytes)
    return {fmt::format("a window of {} needs {} bytes of shared memory, and a block has {}", n, shared_bytes(n),
                        limits.shared_bytes)};
  return wants_gpu_rows(node, limits);
}

Roots roots_of(int64_t n) {
  Roots roots = {};
  const auto root = [n](int64_t m, double& re, double& im) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(m % n) / static_cast<double>(n);
    re = std::cos(angle), im = std::sin(angle);
  };
  for (int i = 0; i < fine_roots; ++i) {
    root(i, roots.fine_re[i], roots.fine_im[i]);
    root(i * fine_roots, roots.coarse_re[i], roots.coarse_im[i]);
  }
  return roots;
}

void launch(const Args& args, Accelerator& device, std::byte*) {
  const View& y = args.out[0];
  const int64_t n = args.in[1].shape[0];
  Radices radices = {};
  for (const FourierPlan::Stage& stage : fourier_plan(n).stages)
    radices.radix[radices.count++] = static_cast<int>(stage.radix);
  gpu::launch<power_spectrum, block_threads>(device, {y.shape[0]}, shared_bytes(n), pointer<const float>(args.in[0]),
                                             pointer<const float>(args.in[1]), args.attr<PowerSpectrumAttr>().hop,
                                             static_cast<int>(n), roots_of(n), radices, rows_of<float>(y));
}

}  // namespace

GpuKernel power_spectrum_gpu() { return {"power_spectrum", Op::power_spectrum, can_run, nullptr, launch}; }

}  // namespace consonant::GPU_BUILD
