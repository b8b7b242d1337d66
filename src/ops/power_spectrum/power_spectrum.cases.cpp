// SPDX-License-Identifier: Apache-2.0
#include "ops/power_spectrum/power_spectrum.hpp"

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> power_spectrum_cases() {
  std::vector<OpCase> cases;
  for (const auto& [n, hop, frames] : std::vector<std::array<int64_t, 3>>{{2, 1, 1},
                                                                          {4, 1, 3},
                                                                          {6, 2, 9},
                                                                          {14, 5, 70},
                                                                          {400, 160, 1},
                                                                          {400, 160, 8},
                                                                          {400, 160, 101},
                                                                          {512, 160, 20},
                                                                          {1024, 256, 9},
                                                                          {26, 13, 5}}) {
    const int64_t samples = (frames - 1) * hop + n + hop / 2;
    cases.push_back({fmt::format("{} samples, window {}, hop {}", samples, n, hop),
                     [=, n = n, hop = hop](CaseBuilder& b) {
                       return power_spectrum(b.values("x", {samples}), b.vector("window", n), hop);
                     },
                     n, static_cast<double>(n)});
  }
  return cases;
}

}  // namespace consonant
