// SPDX-License-Identifier: Apache-2.0
#include "ops/resample/resample.hpp"

#include "ops/cases.hpp"
#include "ops/resample/filter.hpp"

namespace consonant {

std::vector<OpCase> resample_cases() {
  std::vector<OpCase> cases;
  const auto add = [&](int64_t rate_in, int64_t rate_out, const Shape& shape) {
    cases.push_back({fmt::format("{} from {} to {} Hz", to_string(shape), rate_in, rate_out),
                     [=](CaseBuilder& b) { return resample(b.values("x", shape), rate_in, rate_out); },
                     ResampleFilter(rate_in, rate_out).taps()});
  };
  for (int64_t n : {1, 7, 300, 5000}) {
    add(44100, 16000, per_token(2, n));
    add(48000, 16000, per_token(2, n));
    add(8000, 16000, per_token(2, n));
    add(16000, 22050, per_token(2, n));
  }
  add(11025, 16000, {2000});
  add(16000, 16001, {400});
  add(3, 2, per_token(3, 2, 513));
  add(192000, 8000, per_token(1, 3000));
  add(16000, 8000, per_token(3, 0));
  add(16000, 8000, per_token(0, 100));
  add(48000, 16000, {70000});
  return cases;
}

}  // namespace consonant
