// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace consonant {

// A model that hears whether somebody speaks, window by window, from front to back of a recording. The engine
// implements it.
class VoiceModel {
 public:
  virtual ~VoiceModel() = default;

  virtual int64_t window_samples() const = 0;  // 512 at 16 kHz for Silero VAD

  // Forgets what it heard: the next window is a recording's first.
  virtual void reset() = 0;

  // Probabilities of speech in the next windows: samples.size() / window_samples() of them, without a rest.
  virtual std::vector<float> listen(std::span<const float> samples) = 0;
};

}  // namespace consonant
