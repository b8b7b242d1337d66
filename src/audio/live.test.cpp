// SPDX-License-Identifier: Apache-2.0
#include "audio/live.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "audio/microphone.hpp"
#include "audio/test_support.hpp"

namespace consonant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> ramp(int64_t samples) {
  std::vector<float> x(static_cast<size_t>(samples));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) / 65536;
  return x;
}

TEST(Live, WhatIsPushedIsReadInOrderUntilTheStop) {
  LiveAudio live(16000, 0.05, "test", nullptr);  // a ring of 800, so that it goes round
  const std::vector<float> sound = ramp(20000);
  std::atomic<size_t> heard{0};
  std::thread driver([&] {
    for (size_t at = 0; at < sound.size(); at += 160) {
      while (at > heard + 600) std::this_thread::yield();
      live.push(std::span(sound).subspan(at, 160));
    }
    live.stop();
  });
  std::vector<float> block(100);
  while (const int64_t n = live.read(block)) {
    const size_t at = heard;
    ASSERT_TRUE(std::equal(block.begin(), block.begin() + n, sound.begin() + static_cast<std::ptrdiff_t>(at))) << at;
    heard = at + static_cast<size_t>(n);
  }
  driver.join();
  EXPECT_EQ(heard, sound.size());
  EXPECT_TRUE(live.warnings().empty());
  EXPECT_EQ(live.length(), -1);
}

TEST(Live, ReadingEndsWhenStoppedFromAnotherThread) {
  LiveAudio live(44100, 1, "test", nullptr);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    live.stop();
  });
  EXPECT_TRUE(all_of(live).empty());
  other.join();
}

TEST(Live, ConvertsTheDevicesRate) {
  LiveAudio live(48000, 2, "test", nullptr);
  live.push(std::vector<float>(48000, 0.25f));
  live.stop();
  const std::vector<float> heard = all_of(live);
  ASSERT_EQ(heard.size(), 16000U);
  EXPECT_NEAR(heard[8000], 0.25f, 1e-5);
}

TEST(Live, SaysOnceThatSoundWasLost) {
  LiveAudio live(16000, 0.1, "test", nullptr);
  live.push(ramp(2000));
  live.push(ramp(2000));
  live.stop();
  EXPECT_EQ(all_of(live).size(), 1600U);
  EXPECT_THAT(live.warnings(), ElementsAre(HasSubstr("test: sound came faster than it was read")));
}

TEST(Live, EndsWhenTheDeviceIsGone) {
  LiveAudio live(16000, 1, "test", [] { return false; });
  live.push(ramp(10));
  EXPECT_EQ(all_of(live).size(), 10U);
  EXPECT_THAT(live.warnings(), ElementsAre("test: it gives no more sound"));
}

TEST(Microphone, IsReadOrRefusedByTheDevicesExitCode) {
  std::unique_ptr<MicrophoneSource> microphone;
  try {
    microphone = open_default_microphone();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::device);
    EXPECT_THAT(error.what(), ::testing::StartsWith("microphone: "));
    return;
  }
  microphone->stop();
  EXPECT_LT(all_of(*microphone).size(), 16000U);
}

}  // namespace
}  // namespace consonant
