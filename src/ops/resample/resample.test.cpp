// SPDX-License-Identifier: Apache-2.0
#include "ops/resample/resample.hpp"

#include <cmath>

#include "ops/test_support.hpp"

namespace consonant {
namespace {

using namespace testing_ops;

constexpr double pi = 3.14159265358979;

std::vector<float> tone(double hertz, int64_t rate, int64_t samples) {
  std::vector<float> sound(static_cast<size_t>(samples));
  for (size_t i = 0; i < sound.size(); ++i)
    sound[i] = static_cast<float>(std::cos(2 * pi * hertz * static_cast<double>(i) / static_cast<double>(rate)));
  return sound;
}

// The greatest difference from the tone of that level, away from the ends.
double difference(DeviceKind device, double hertz, int64_t rate_in, int64_t rate_out, double level) {
  const int64_t n = rate_in / 10;
  const std::vector<float> got = compute(device, [&](CaseBuilder& b) {
    return resample(b.numbers("x", {n}, tone(hertz, rate_in, n)), rate_in, rate_out);
  });
  const std::vector<float> want = tone(hertz, rate_out, rate_out / 10);
  EXPECT_EQ(got.size(), want.size());
  double worst = 0;
  for (size_t i = want.size() / 3; i < want.size() * 2 / 3; ++i)
    worst = std::max(worst, std::abs(got[i] - level * want[i]));
  return worst;
}

TEST(Resample, KeepsTonesOfThePassBandInPhase) {
  for (const DeviceKind device : both_devices)
    for (const auto& [in, out] :
         {std::pair<int64_t, int64_t>{44100, 16000}, {48000, 16000}, {8000, 16000}, {16000, 44100}}) {
      const double half = static_cast<double>(std::min(in, out)) / 2;
      for (const double hertz : {0.0, 440.0, 0.5 * half, 0.9 * half})
        EXPECT_LT(difference(device, hertz, in, out, 1), 1e-4) << in << " to " << out << ", " << hertz << " Hz";
    }
}

TEST(Resample, RemovesTonesOfTheStopBand) {
  for (const DeviceKind device : both_devices) {
    for (const double hertz : {8000.0, 8100.0, 12345.0, 20000.0})
      EXPECT_LT(difference(device, hertz, 44100, 16000, 0), 2e-5) << hertz;
    for (const double hertz : {8000.0, 15000.0, 23000.0})
      EXPECT_LT(difference(device, hertz, 48000, 16000, 0), 2e-5) << hertz;
  }
}

TEST(Resample, CountsSamplesRounded) {
  const auto samples = [](int64_t n, int64_t in, int64_t out) {
    CaseBuilder b;
    return resample(b.values("x", {n}), in, out).shape().last();
  };
  EXPECT_EQ(samples(441, 44100, 16000), 160);
  EXPECT_EQ(samples(1, 44100, 16000), 0);
  EXPECT_EQ(samples(2, 44100, 16000), 1);
  EXPECT_EQ(samples(3, 8000, 16000), 6);
}

TEST(Resample, AtTheSameRateIsItsInput) {
  CaseBuilder b;
  const Tensor x = b.values("x", {9});
  EXPECT_EQ(resample(x, 16000, 16000), x);
}

TEST(Resample, RefusesARateOfNothing) {
  EXPECT_THAT(refusal_of([](CaseBuilder& b) { return resample(b.values("x", {9}), 0, 16000); }),
              HasSubstr("rates from 1 to 10000000, not 0 and 16000"));
}

}  // namespace
}  // namespace consonant
