// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace consonant {

// What a discrete Fourier transform of n real numbers needs: the stages of one of n / 2 complex numbers (Cooley and
// Tukey 1965, in Stockham's order), and the factors that take them apart again.
struct FourierPlan {
  struct Stage {
    int64_t radix;
    int64_t length;                            // of the transforms that are joined, `radix` of them to one
    std::vector<double> factor_re, factor_im;  // [length, radix, radix]: exp(-2 pi i (j + length k) p / (length radix))
  };
  int64_t n;
  std::vector<Stage> stages;
  std::vector<double> split_re, split_im;  // [n / 2 + 1]: exp(-2 pi i k / n)

  explicit FourierPlan(int64_t n);
};

// The plan for n numbers, made once a process.
const FourierPlan& fourier_plan(int64_t n);

}  // namespace consonant
