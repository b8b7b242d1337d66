// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace consonant {

// One channel of sound from one rate to another, as it comes, without delay: sample 0 stays at time 0. After `finish`
// there are rate_out / rate_in times as many samples, rounded.
class Resampler {
 public:
  Resampler(int64_t rate_in, int64_t rate_out);
  Resampler(const Resampler&) = delete;
  Resampler& operator=(const Resampler&) = delete;
  ~Resampler();

  // Both append to `out`.
  void process(std::span<const float> in, std::vector<float>& out);
  void finish(std::vector<float>& out);

  static int64_t samples_out(int64_t samples, int64_t rate_in, int64_t rate_out);

 private:
  struct Soxr;
  int64_t rate_in_, rate_out_;
  int64_t taken_ = 0, given_ = 0;
  std::unique_ptr<Soxr> soxr_;  // null if the rates are the same
};

}  // namespace consonant
