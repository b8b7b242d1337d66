// SPDX-License-Identifier: Apache-2.0
#include "audio/write.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "audio/test_support.hpp"

namespace consonant {
namespace {

using ::testing::HasSubstr;

bool is_empty(const TemporaryFolder& folder) { return std::filesystem::is_empty(folder / ""); }

class Written : public ::testing::TestWithParam<SoundKind> {};

TEST_P(Written, ComesBackTheSame) {
  const TemporaryFolder folder;
  const std::string path = folder / "out";
  const std::vector<float> clip = samples_of_clip("cards_002.wav");
  {
    SoundWriter writer(path, GetParam(), 16000);
    writer.write(std::span(clip).first(777));
    writer.write(std::span(clip).subspan(777));
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.commit();
  }
  EXPECT_EQ(all_of(*read_audio(path)), clip);
  const std::vector<std::byte> first = bytes_of(path);
  SoundWriter again(path, GetParam(), 16000);
  again.write(clip);
  again.commit();
  EXPECT_EQ(bytes_of(path), first);
}

TEST_P(Written, LeavesNothingBehindWithoutCommit) {
  const TemporaryFolder folder;
  {
    SoundWriter writer(folder / "out", GetParam(), 16000, 2);
    writer.write(std::vector<float>(1000, 0.5f));
  }
  EXPECT_TRUE(is_empty(folder));
}

TEST_P(Written, AFullDiskIsAnError) {
  const TemporaryFolder folder;
  // A limit on a file's size looks like a full disk to who writes.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{20000, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of(Exit::failed, [&] {
    SoundWriter writer(folder / "out", GetParam(), 16000);
    std::vector<float> noise(200000);
    uint32_t state = 1;
    for (float& x : noise) x = static_cast<float>((state = state * 1664525 + 1013904223) >> 16) / 65536 - 0.5f;
    writer.write(noise);
    writer.commit();
  });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(message, HasSubstr("can't be written"));
  EXPECT_TRUE(is_empty(folder));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Written, ::testing::Values(SoundKind::wav_s16, SoundKind::wav_f32, SoundKind::flac));

TEST(Write, IntegersAreCutOffAtTheirEnds) {
  const TemporaryFolder folder;
  SoundWriter writer(folder / "out.wav", SoundKind::wav_s16, 16000);
  writer.write(std::vector<float>{2, -2, 1, -1, 0.5f});
  writer.commit();
  EXPECT_THAT(all_of(*read_audio(folder / "out.wav")),
              ::testing::ElementsAre(32767.0f / 32768, -1, 32767.0f / 32768, -1, 0.5f));
}

TEST(Write, RefusesWhatIsNoSound) {
  const TemporaryFolder folder;
  SoundWriter writer(folder / "out.wav", SoundKind::wav_s16, 16000, 2);
  EXPECT_THAT(message_of(Exit::failed, [&] { writer.write(std::vector<float>{0, NAN}); }), HasSubstr("no number"));
  EXPECT_THAT(message_of(Exit::failed,
                         [&] {
                           writer.write(std::vector<float>{0, 0, 0});
                         }),
              HasSubstr("3 samples are no whole frames of 2 channels"));
  EXPECT_NE(message_of(Exit::failed, [&] { SoundWriter(folder / "none/out.wav", SoundKind::flac, 16000); }),
            "no error");
}

}  // namespace
}  // namespace consonant
