// SPDX-License-Identifier: Apache-2.0
#include "audio/resample.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace consonant {
namespace {

std::vector<float> sine(double hz, int64_t rate, int64_t samples, double amplitude = 0.5) {
  std::vector<float> x(static_cast<size_t>(samples));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(amplitude *
                              std::sin(2 * std::numbers::pi * hz * static_cast<double>(i) / static_cast<double>(rate)));
  return x;
}

std::vector<float> resampled(std::span<const float> in, int64_t from, int64_t to, size_t chunk) {
  Resampler resampler(from, to);
  std::vector<float> out;
  for (size_t at = 0; at < in.size(); at += chunk)
    resampler.process(in.subspan(at, std::min(chunk, in.size() - at)), out);
  resampler.finish(out);
  return out;
}

class Rates : public ::testing::TestWithParam<int64_t> {};

TEST_P(Rates, ASineStaysWhereItIs) {
  const int64_t rate = GetParam();
  const std::vector<float> out = resampled(sine(300, rate, rate), rate, 16000, 1000);
  ASSERT_EQ(out.size(), 16000U);
  const std::vector<float> wanted = sine(300, 16000, 16000);
  double worst = 0;  // away from the ends, where the sine begins and stops at once
  for (size_t i = 2000; i < 14000; ++i) worst = std::max(worst, std::fabs(static_cast<double>(out[i]) - wanted[i]));
  EXPECT_LT(worst, 1e-5);
}

class HighRates : public ::testing::TestWithParam<int64_t> {};

TEST_P(HighRates, WhatDoesNotFitIsGone) {
  const int64_t rate = GetParam();
  const std::vector<float> out = resampled(sine(10000, rate, rate), rate, 16000, 4096);
  double worst = 0;
  for (size_t i = 2000; i < 14000; ++i) worst = std::max(worst, std::fabs(static_cast<double>(out[i])));
  EXPECT_LT(worst, 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, Rates, ::testing::Values(1000, 8000, 11025, 16000, 22050, 24000, 44100, 48000, 192000));
INSTANTIATE_TEST_SUITE_P(All, HighRates, ::testing::Values(24000, 44100, 48000, 96000, 192000));

RC_GTEST_PROP(Resample, GivesTheRoundedCountInAnyChunks, ()) {
  const auto rate = *rc::gen::inRange<int64_t>(1000, 200000);
  const auto samples = *rc::gen::inRange<int64_t>(0, 20000);
  const auto chunk = *rc::gen::inRange<size_t>(1, 5000);
  const std::vector<float> in = sine(200, rate, samples);
  const std::vector<float> out = resampled(in, rate, 16000, chunk);
  RC_ASSERT(std::ssize(out) == Resampler::samples_out(samples, rate, 16000));
  // However it is cut, it is the same.
  RC_ASSERT(out == resampled(in, rate, 16000, 20000));
}

TEST(Resample, CountsWithoutOverflow) {
  EXPECT_EQ(Resampler::samples_out(3, 2, 1), 2);
  EXPECT_EQ(Resampler::samples_out(int64_t{1} << 60, 768000, 16000), (int64_t{1} << 60) / 48);
}

}  // namespace
}  // namespace consonant
