// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "tasks/voice_model.hpp"

namespace consonant {

// A model for tests that hears speech wherever there is sound.
class FakeVoiceModel final : public VoiceModel {
 public:
  int64_t window_samples() const override { return 512; }
  void reset() override { ++resets; }
  std::vector<float> listen(std::span<const float> samples) override {
    EXPECT_EQ(samples.size() % 512, 0u);
    std::vector<float> probabilities;
    for (; !samples.empty(); samples = samples.subspan(512)) {
      double sum = 0;
      for (const float x : samples.first(512)) sum += std::abs(x);
      probabilities.push_back(sum / 512 > 1e-3 ? 0.9f : 0.1f);
    }
    return probabilities;
  }

  int resets = 0;
};

}  // namespace consonant
