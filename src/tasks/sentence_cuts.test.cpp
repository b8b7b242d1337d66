// SPDX-License-Identifier: Apache-2.0
#include "tasks/sentence_cuts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> cut(std::string_view text, int64_t most = longest_part) {
  std::vector<std::string> texts;
  for (const SpokenPart& part : cut_sentences(text, most)) {
    texts.push_back(part.text);
    int64_t points = 0;
    for (size_t at = 0; at < part.text.size(); ++points) utf8_next(part.text, at);
    EXPECT_EQ(part.code_points, points);
    EXPECT_LE(points, most);
  }
  return texts;
}

TEST(SentenceCuts, ASentenceEndsAtItsMark) {
  EXPECT_THAT(cut("One is here. Two!  Three? And four"), ElementsAre("One is here.", "Two!", "Three?", "And four"));
  EXPECT_THAT(cut("  He said \"Stop!\" Then (all of it.) Nothing...  \n"),
              ElementsAre("He said \"Stop!\"", "Then (all of it.)", "Nothing..."));
  EXPECT_THAT(cut("Really?! Yes."), ElementsAre("Really?!", "Yes."));
}

TEST(SentenceCuts, ADotWithinIsNoEnd) {
  EXPECT_THAT(cut("It is 1.5 m. See example.org for more."), ElementsAre("It is 1.5 m.", "See example.org for more."));
  EXPECT_THAT(cut("Dr. Smith met J. Doe. They left."), ElementsAre("Dr. Smith met J. Doe.", "They left."));
  EXPECT_THAT(cut("wait... no, go. and on"), ElementsAre("wait... no, go. and on"));
  EXPECT_THAT(cut("This is no. 5 etc."), ElementsAre("This is no. 5 etc."));
}

TEST(SentenceCuts, OtherScriptsHaveTheirOwnMarks) {
  EXPECT_THAT(cut("你好。今天很好！「走吧。」再见"), ElementsAre("你好。", "今天很好！", "「走吧。」", "再见"));
  EXPECT_THAT(cut("नमस्ते। कैसे हो।"), ElementsAre("नमस्ते।", "कैसे हो।"));
  EXPECT_THAT(cut("هل أنت هنا؟ نعم."), ElementsAre("هل أنت هنا؟", "نعم."));
}

TEST(SentenceCuts, AnEmptyLineEndsOneAndASingleEndOfLineDoesNot) {
  EXPECT_THAT(cut("A heading\n\nand a text\nof two lines"), ElementsAre("A heading", "and a text\nof two lines"));
  EXPECT_THAT(cut("A\n \t\nB"), ElementsAre("A", "B"));
}

TEST(SentenceCuts, MarksAloneAreNothingToSay) {
  EXPECT_THAT(cut(""), IsEmpty());
  EXPECT_THAT(cut(" \n\t "), IsEmpty());
  EXPECT_THAT(cut("... !? — 。"), IsEmpty());
  EXPECT_THAT(cut("Yes. - ! No."), ElementsAre("Yes. - !", "No."));
  EXPECT_THAT(cut("... Well. So."), ElementsAre("... Well.", "So."));
}

TEST(SentenceCuts, WhatIsTooLongIsCutAtAPauseOrABlank) {
  EXPECT_THAT(cut("one two three, four five six", 20), ElementsAre("one two three,", "four five six"));
  EXPECT_THAT(cut("one two three four five six", 20), ElementsAre("one two three four", "five six"));
  EXPECT_THAT(cut("abcdefghij", 4), ElementsAre("abcd", "efgh", "ij"));
  EXPECT_THAT(cut("一二三四，五六七八九", 6), ElementsAre("一二三四，", "五六七八九"));
}

// Nothing that is said is lost, whatever the lengths.
TEST(SentenceCuts, AllThatIsSaidComesOnceAndInOrder) {
  const std::string text =
      "Dr. A. Bee paid 3.50 (three fifty) for it; so he said: \"Never!\" Then... nothing. 你好。好 — end\n\nnext, and "
      "on";
  std::string said;
  for (const char c : text)
    if (c != ' ' && c != '\n') said += c;
  for (int64_t most = 1; most < 60; ++most) {
    std::string found;
    for (const std::string& part : cut(text, most))
      for (const char c : part)
        if (c != ' ' && c != '\n') found += c;
    if (most > 12) {
      EXPECT_EQ(found, said) << most;
    }
  }
}

}  // namespace
}  // namespace consonant
