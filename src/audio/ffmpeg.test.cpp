// SPDX-License-Identifier: Apache-2.0
// What another program decodes: scripts that behave as ffmpeg might, and the real one where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "audio/test_support.hpp"

namespace consonant {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Ffmpeg : public ::testing::Test {
 protected:
  // Settings whose ffmpeg is a shell script.
  ReadSettings acting(const std::string& script, double patience = 30) {
    const std::string path = folder_ / "ffmpeg";
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ::chmod(path.c_str(), 0700);
    ReadSettings settings;
    settings.ffmpeg = path;
    settings.ffmpeg_patience = patience;
    return settings;
  }
  static std::string refusal(const ReadSettings& settings) {
    return message_of(Exit::input, [&] { samples_of_clip("fmt_16k_aac.m4a", settings); });
  }
  void TearDown() override { EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left"; }

  TemporaryFolder folder_;
  const std::string m4a_ = clip_path("fmt_16k_aac.m4a");
};

TEST_F(Ffmpeg, ItsOutputIsRead) {
  const ReadSettings settings = acting("cat '" + clip_path("fmt_streamed_sizes.wav") + "'");
  const auto audio = read_audio(m4a_, settings);
  EXPECT_EQ(audio->length(), -1);
  EXPECT_EQ(all_of(*audio), samples_of_clip("fmt_streamed_sizes.wav"));
  EXPECT_THAT(audio->warnings(), IsEmpty());
}

TEST_F(Ffmpeg, GetsTheFileAsItsInputAndNoShell) {
  const std::string path = folder_ / "a 'name'; $(touch x) -y.m4a";
  std::filesystem::copy_file(m4a_, path);
  const ReadSettings settings = acting("cmp -s /dev/fd/0 '" + m4a_ + "' || { echo not the file >&2; exit 1; }\ncat '" +
                                       clip_path("short_20ms.wav") + "'");
  EXPECT_EQ(all_of(*read_audio(path, settings)).size(), 320U);
  EXPECT_EQ(all_of(*read_audio_bytes(bytes_of(path), "bytes", settings)).size(), 320U);
}

TEST_F(Ffmpeg, WhatItSaysIsInTheError) {
  EXPECT_EQ(refusal(acting("echo first >&2; echo second >&2; exit 8")),
            m4a_ + ": ffmpeg ended with code 8: first; second");
  EXPECT_EQ(refusal(acting("kill -9 $$")), m4a_ + ": ffmpeg was ended by signal 9");
  EXPECT_EQ(refusal(acting("exit 0")), m4a_ + ": ffmpeg found no sound in it");
  EXPECT_THAT(refusal(acting("echo something else")), HasSubstr(m4a_ + ": "));
  EXPECT_THAT(refusal(acting("cat '" + clip_path("bad_zero_rate.wav") + "'")), HasSubstr("(in what ffmpeg wrote)"));
}

TEST_F(Ffmpeg, ManyWordsDoNotBlockIt) {
  const ReadSettings settings = acting(
      "i=0; while [ $i -lt 4000 ]; do echo 'a line of fifty letters or so, again and again' >&2; "
      "i=$((i+1)); done; cat '" +
      clip_path("short_20ms.wav") + "'");
  EXPECT_EQ(samples_of_clip("fmt_16k_aac.m4a", settings).size(), 320U);
}

TEST_F(Ffmpeg, AFaultInTheMiddleIsAWarning) {
  const ReadSettings settings =
      acting("cat '" + clip_path("fmt_streamed_sizes.wav") + "'; echo broken off >&2; exit 1");
  const auto audio = read_audio(m4a_, settings);
  EXPECT_EQ(all_of(*audio).size(), 47840U);
  EXPECT_THAT(audio->warnings(),
              ElementsAre(m4a_ + ": reading stopped after 2.990 s: ffmpeg ended with code 1: broken off"));
}

TEST_F(Ffmpeg, AHangIsEnded) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(refusal(acting("sleep 60 & echo waiting >&2; sleep 60", 0.3)),
            m4a_ + ": ffmpeg gave nothing for 0.3 s and was stopped: waiting");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST_F(Ffmpeg, IsEndedWhenNobodyReadsOn) {
  const std::string mark = folder_ / "mark";
  const auto start = std::chrono::steady_clock::now();
  {
    const ReadSettings settings =
        acting("cat '" + clip_path("fmt_streamed_sizes.wav") + "'; sleep 60; touch '" + mark + "'");
    const auto audio = read_audio(m4a_, settings);
    std::vector<float> block(100);
    EXPECT_EQ(audio->read(block), 100);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST_F(Ffmpeg, IsNotThere) {
  ReadSettings settings;
  settings.ffmpeg = "consonant-has-no-such-program";
  EXPECT_EQ(refusal(settings),
            m4a_ +
                ": MP4 (m4a, mp4, mov, 3gp) is read through an ffmpeg executable, and none is on the "
                "PATH: install ffmpeg");
}

TEST_F(Ffmpeg, IsAskedAfterLibsndfileRefused) {
  std::vector<std::byte> bytes(600);
  std::memcpy(bytes.data(), "OggS", 4);
  EXPECT_EQ(all_of(*read_audio_bytes(bytes, "x.ogg", acting("cat '" + clip_path("short_20ms.wav") + "'"))).size(),
            320U);
  const std::string message =
      message_of(Exit::input, [&] { read_audio_bytes(bytes, "x.ogg", acting("echo no stream >&2; exit 1")); });
  EXPECT_THAT(message, HasSubstr("x.ogg: Ogg that can't be read: "));
  EXPECT_THAT(message, HasSubstr("; tried with ffmpeg as well: ffmpeg ended with code 1: no stream"));
}

TEST_F(Ffmpeg, TextIsNeverGivenToIt) {
  EXPECT_EQ(message_of(Exit::input, [&] { read_audio(clip_path("bad_text.wav"), acting("exit 1")); }),
            clip_path("bad_text.wav") + ": is text, not sound");
}

TEST_F(Ffmpeg, RealOneReadsM4a) {
  std::vector<float> samples;
  try {
    const auto audio = read_audio(m4a_);
    samples = all_of(*audio);
    EXPECT_THAT(audio->warnings(), IsEmpty());
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("install ffmpeg") == std::string_view::npos) throw;
    GTEST_SKIP() << "no ffmpeg on the PATH";
  }
  const std::vector<float> reference = samples_of_clip("fmt_16k_f32.wav");
  EXPECT_NEAR(static_cast<double>(samples.size()), static_cast<double>(reference.size()), 1100);
  double product = 0, mine = 0, theirs = 0;
  for (size_t i = 0; i < std::min(samples.size(), reference.size()); ++i) {
    product += static_cast<double>(samples[i]) * reference[i];
    mine += static_cast<double>(samples[i]) * samples[i];
    theirs += static_cast<double>(reference[i]) * reference[i];
  }
  EXPECT_GT(product / std::sqrt(mine * theirs), 0.97);
}

}  // namespace
}  // namespace consonant
