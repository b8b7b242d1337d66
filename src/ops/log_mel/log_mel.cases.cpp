// SPDX-License-Identifier: Apache-2.0
#include "ops/log_mel/log_mel.hpp"

#include <limits>

#include "ops/cases.hpp"

namespace consonant {

std::vector<OpCase> log_mel_cases() {
  std::vector<OpCase> cases;
  for (const int64_t frames : {1, 7, 100, 3000})
    for (const int64_t mels : {1, 80, 128})
      for (const float before : {-std::numeric_limits<float>::infinity(), 6.0f})
        cases.push_back(
            {fmt::format("[{}, {}], peak {}", frames, mels, before), [=](CaseBuilder& b) {
               const std::vector<float> energies = {1e-12f, 0, 3, 1e-4f, 2e-9f, 1e5f, 0.7f};
               return log_mel(b.numbers("x", {frames, mels}, energies), b.numbers("peak", {1}, {before})).first;
             }});
  return cases;
}

}  // namespace consonant
