// SPDX-License-Identifier: Apache-2.0
#include "tasks/segment_rule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tasks/fake_window_model.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;

const WhisperVocabulary v = fake_vocabulary();

// "<0>ab<100><100>c": text by its letters, timestamps by their steps.
std::vector<int32_t> tokens_of(const std::string& text) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '<') {
      tokens.push_back(text[i]);
    } else {
      size_t used = 0;
      tokens.push_back(v.first_timestamp + std::stoi(text.substr(i + 1), &used));
      i += used + 1;
    }
  }
  return tokens;
}

std::string shown(const WindowCut& cut) {
  std::string text;
  for (const WindowSegment& s : cut.segments) {
    text += std::to_string(s.start) + "-" + std::to_string(s.end) + " " +
            std::string(s.tokens.begin(), s.tokens.end()) + "; ";
  }
  return text + std::to_string(cut.advance);
}

std::string cut(const std::string& text, int64_t length = 1500, bool whole = false) {
  return shown(cut_window(tokens_of(text), v, length, whole));
}

TEST(SegmentRule, ASingleTimestampAtTheEndUsesTheWindowUp) {
  EXPECT_EQ(cut("<0>ab<550>"), "0-550 ab; 1500");
  EXPECT_EQ(cut("<0>ab<400><400>cd<550>"), "0-400 ab; 400-550 cd; 1500");
  EXPECT_EQ(cut("<0>ab<400><410>cd<550>", 600), "0-400 ab; 410-550 cd; 600");
}

TEST(SegmentRule, APairLeavesTheRestForTheNextWindow) {
  EXPECT_EQ(cut("<0>ab<400><400>cd"), "0-400 ab; 400");
  EXPECT_EQ(cut("<0>ab<400><420>"), "0-400 ab; 400");
  EXPECT_EQ(cut("<0>ab<400><400>cd<500><500>e"), "0-400 ab; 400-500 cd; 500");
  EXPECT_EQ(cut("<0>ab<400><410>cd", 1500, true), "0-400 ab; 410-1500 cd; 1500");
}

TEST(SegmentRule, WithoutAPairThereIsOneSegment) {
  EXPECT_EQ(cut("ab", 900), "0-900 ab; 900");
  EXPECT_EQ(cut("<30>ab", 900), "30-900 ab; 900");
  EXPECT_EQ(cut("", 900), "900");
  EXPECT_EQ(cut("<0>", 900), "900");
}

TEST(SegmentRule, TimesStayInTheSound) {
  EXPECT_EQ(cut("<0>ab<1400>", 250), "0-250 ab; 250");
  EXPECT_EQ(cut("<0>ab<300><300>cd<400>", 250), "0-250 ab; 250-250 cd; 250");
  EXPECT_EQ(cut("<0>ab<300><300>cd", 250), "0-250 ab; 250");
}

TEST(SegmentRule, TokensAreKeptWithTheirTimes) {
  const auto tokens = tokens_of("<0>ab<400><400>cd<550>");
  const WindowCut cut = cut_window(tokens, v, 1500, false);
  EXPECT_THAT(cut.segments[1].all_tokens, ElementsAre(v.first_timestamp + 400, 'c', 'd', v.first_timestamp + 550));
}

// Any tokens at all, whether the rules would let them be written or not.
TEST(SegmentRule, TimesNeverRunBackwards) {
  rc::check([] {
    const auto length = *rc::gen::inRange<int64_t>(1, 1501);
    const bool whole = *rc::gen::arbitrary<bool>();
    std::vector<int32_t> tokens;
    const int count = *rc::gen::inRange(0, 20);
    for (int i = 0; i < count; ++i) {
      tokens.push_back(*rc::gen::inRange(0, 2) == 0 ? v.first_timestamp + *rc::gen::inRange(0, 1501)
                                                    : *rc::gen::inRange<int32_t>('a', 'z'));
    }
    const WindowCut cut = cut_window(tokens, v, length, whole);
    int64_t at = 0;
    for (const WindowSegment& s : cut.segments) {
      RC_ASSERT(s.start >= at);
      RC_ASSERT(s.end >= s.start);
      RC_ASSERT(s.end <= length);
      RC_ASSERT(!s.tokens.empty());
      at = s.end;
    }
    RC_ASSERT(cut.advance >= 0);
    RC_ASSERT(cut.advance <= length);
    if (whole) RC_ASSERT(cut.advance == length);
  });
}

}  // namespace
}  // namespace consonant
