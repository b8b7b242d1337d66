// SPDX-License-Identifier: Apache-2.0
#include "tasks/speech_joints.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t rate = 24000;

std::vector<float> joined(const std::vector<std::vector<float>>& sentences, size_t piece) {
  std::vector<float> out;
  SpeechJoints joints(rate, [&](std::span<const float> samples) {
    out.insert(out.end(), samples.begin(), samples.end());
    return true;
  });
  for (size_t s = 0; s < sentences.size(); ++s) {
    joints.begin();
    for (size_t at = 0; at < sentences[s].size(); at += piece)
      joints.add(std::span(sentences[s]).subspan(at, std::min(piece, sentences[s].size() - at)));
    joints.end(s + 1 == sentences.size());
  }
  EXPECT_EQ(joints.samples(), std::ssize(out));
  return out;
}

TEST(SpeechJoints, OneSentenceIsAsItCame) {
  const std::vector<float> sound(1000, 0.5f);
  EXPECT_EQ(joined({sound}, 77), sound);
}

TEST(SpeechJoints, PiecesOfAnySizeMakeTheSameSound) {
  const std::vector<std::vector<float>> sentences = {std::vector<float>(5000, 0.5f), std::vector<float>(50, 0.25f),
                                                     std::vector<float>(3000, -0.5f)};
  const auto whole = joined(sentences, 100000);
  EXPECT_EQ(whole.size(), 8050u + 2 * 4800);
  for (const size_t piece : {1, 119, 120, 121, 1920}) EXPECT_EQ(joined(sentences, piece), whole) << piece;
}

TEST(SpeechJoints, NothingJumpsAtAJoint) {
  const auto out = joined({std::vector<float>(5000, 0.9f), std::vector<float>(5000, -0.9f)}, 1920);
  EXPECT_EQ(out.front(), 0.9f);
  EXPECT_EQ(out.back(), -0.9f);
  for (size_t i = 1; i < out.size(); ++i) EXPECT_LE(std::fabs(out[i] - out[i - 1]), 0.0101f) << i;
  EXPECT_EQ(out[5000 + 2400], 0.0f);
}

TEST(SpeechJoints, WhatIsWrongWithTheSoundIsSaid) {
  SpeechJoints joints(rate, {});
  joints.begin();
  joints.add(std::vector<float>(1000, 0.0f));
  joints.end(false);
  EXPECT_THAT(joints.faults(), ElementsAre(HasSubstr("silent")));
  joints.begin();
  joints.add(std::vector<float>(1000, 1.0f));
  joints.end(false);
  EXPECT_THAT(joints.faults(), ElementsAre(HasSubstr("100.0%")));
  joints.begin();
  joints.add(std::vector<float>(1000, 0.1f));
  joints.end(true);
  EXPECT_THAT(joints.faults(), IsEmpty());
  EXPECT_THROW(joints.add(std::vector<float>{0, NAN}), Error);
}

TEST(SpeechJoints, NoMoreIsGivenThanIsWanted) {
  int calls = 0;
  SpeechJoints joints(rate, [&](std::span<const float>) { return ++calls < 2; });
  joints.begin();
  for (int i = 0; i < 5; ++i) joints.add(std::vector<float>(1000, 0.1f));
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(joints.wanted());
}

}  // namespace
}  // namespace consonant
