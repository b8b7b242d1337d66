// SPDX-License-Identifier: Apache-2.0
#include "tasks/subtitles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TimedSegment segment(double start, double end, std::string text, std::string speaker = "") {
  TimedSegment s;
  s.start = start, s.end = end, s.text = std::move(text), s.speaker = std::move(speaker);
  return s;
}

// Words of a text a third of a second each.
TimedSegment spoken(double start, const std::string& text) {
  TimedSegment s = segment(start, start, text);
  std::istringstream stream(text);
  for (std::string word; stream >> word;) {
    s.words.push_back({" " + word, s.end, s.end + 0.3, 0.9});
    s.end += 0.3;
  }
  return s;
}

TimedTranscript two() {
  TimedTranscript t;
  t.file = "a/b c.wav";
  t.duration = 4000;
  t.segments = {segment(0, 1.5, " Hello, \"you\" & <me>."), segment(3723.0049, 3725, "  Next\nline ")};
  return t;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(Transcript, Text) { EXPECT_EQ(write_transcript(two(), "txt"), "Hello, \"you\" & <me>.\nNext line\n"); }

TEST(Transcript, Srt) {
  EXPECT_EQ(write_transcript(two(), "srt"),
            "1\n00:00:00,000 --> 00:00:01,500\nHello, \"you\" & <me>.\n\n"
            "2\n01:02:03,005 --> 01:02:05,000\nNext line\n");
}

TEST(Transcript, VttEscapes) {
  EXPECT_EQ(write_transcript(two(), "vtt"),
            "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nHello, \"you\" &amp; &lt;me&gt;.\n\n"
            "01:02:03.005 --> 01:02:05.000\nNext line\n");
  TimedTranscript t;
  t.segments = {segment(0, 1, " a --> b", "A & B")};
  EXPECT_THAT(write_transcript(t, "vtt"), HasSubstr("\n<v A &amp; B>a --&gt; b\n"));
}

TEST(Transcript, Tables) {
  EXPECT_EQ(write_transcript(two(), "csv"),
            "start,end,text\n0,1500,\"Hello, \"\"you\"\" & <me>.\"\n3723005,3725000,\"Next line\"\n");
  EXPECT_EQ(write_transcript(two(), "tsv"),
            "start\tend\ttext\n0\t1500\tHello, \"you\" & <me>.\n3723005\t3725000\tNext line\n");
  TimedTranscript t;
  t.segments = {segment(0, 1, " a\tb", "S1"), segment(1, 2, " c")};
  EXPECT_EQ(write_transcript(t, "tsv"), "start\tend\tspeaker\ttext\n0\t1000\tS1\ta b\n1000\t2000\t\tc\n");
}

TEST(Transcript, Rttm) {
  TimedTranscript t = two();
  EXPECT_EQ(write_transcript(t, "rttm"), "");
  t.segments[0].speaker = "speaker 1";
  EXPECT_EQ(write_transcript(t, "rttm"), "SPEAKER b_c 1 0.000 1.500 <NA> <NA> speaker_1 <NA> <NA>\n");
}

TEST(Transcript, JsonHasItsKeysInOrder) {
  TimedTranscript t = two();
  t.language = "en", t.language_probability = 0.25, t.text = "\xff ok";
  t.segments[0].tokens = {1, 2}, t.segments[0].avg_logprob = -std::numeric_limits<double>::infinity();
  t.segments[0].words = {{" Hello,", 0.1, 0.30000000000000004, 0.5}};
  const std::string text = write_transcript(t, "json");
  const auto j = nlohmann::ordered_json::parse(text);
  std::vector<std::string> keys, segment_keys, word_keys;
  for (const auto& item : j.items()) keys.push_back(item.key());
  for (const auto& item : j["segments"][0].items()) segment_keys.push_back(item.key());
  for (const auto& item : j["segments"][0]["words"][0].items()) word_keys.push_back(item.key());
  EXPECT_THAT(keys, ElementsAre("file", "duration", "language", "language_probability", "text", "segments", "warnings",
                                "stop_reason", "timings"));
  EXPECT_THAT(segment_keys, ElementsAre("id", "start", "end", "text", "speaker", "avg_logprob", "no_speech_prob",
                                        "tokens", "words", "compression_ratio", "temperature"));
  EXPECT_THAT(word_keys, ElementsAre("word", "start", "end", "probability"));
  EXPECT_EQ(j["segments"][0]["words"][0]["end"].dump(), "0.3");
  EXPECT_EQ(j["segments"][1]["start"].dump(), "3723.005");
  EXPECT_EQ(j["text"], "\xef\xbf\xbd ok");
}

TEST(Subtitles, LongSegmentsAreCutWhereTheyReadBest) {
  TimedTranscript t;
  t.segments = {spoken(10,
                       "It was the best of times, it was the worst of times, it was the age of wisdom, it was the "
                       "age of foolishness, it was the epoch of belief")};
  EXPECT_EQ(write_transcript(t, "srt"),
            "1\n00:00:10,000 --> 00:00:15,400\nIt was the best of times, it was the worst\n"
            "of times, it was the age of wisdom,\n\n"
            "2\n00:00:15,400 --> 00:00:19,000\nit was the age of foolishness,\nit was the epoch of belief\n");
}

TEST(Subtitles, SplitGivesEachSentenceItsOwn) {
  TimedTranscript t;
  t.segments = {spoken(0, "One. Two? Three and four.")};
  EXPECT_EQ(write_transcript(t, "srt", {.sentences = true}),
            "1\n00:00:00,000 --> 00:00:00,300\nOne.\n\n2\n00:00:00,300 --> 00:00:00,600\nTwo?\n\n"
            "3\n00:00:00,600 --> 00:00:01,500\nThree and four.\n");
  EXPECT_EQ(lines_of(write_transcript(t, "srt")).size(), 3u);
}

TEST(Subtitles, LinesHoldWhatTheyMayAndAllWords) {
  rc::check([] {
    TimedTranscript t;
    std::string text, all;
    const int count = *rc::gen::inRange(1, 60);
    for (int i = 0; i < count; ++i) {
      const std::string word = std::string(size_t(*rc::gen::inRange(1, 14)), char('a' + i % 26)) +
                               *rc::gen::element<std::string>("", "", "", ",", ".", "é");
      text += " " + word, all += word;
    }
    t.segments = {spoken(1, text), spoken(40, " x")};
    all += "x";
    const CueOptions options{.sentences = *rc::gen::arbitrary<bool>()};
    const auto lines = lines_of(write_transcript(t, "srt", options));
    std::string got, last = "00:00:00,000";
    for (size_t i = 0; i < lines.size();) {
      const std::string times = lines.at(i + 1);
      RC_ASSERT(times.substr(0, 12) >= last);
      RC_ASSERT(times.substr(17) >= times.substr(0, 12));
      last = times.substr(17);
      size_t of_cue = 0;
      for (i += 2; i < lines.size() && !lines[i].empty(); ++i, ++of_cue) {
        RC_ASSERT(lines[i].size() <= 42u + 14);  // accents take two bytes
        for (const char c : lines[i]) got += c == ' ' ? "" : std::string(1, c);
      }
      RC_ASSERT(of_cue >= 1 && of_cue <= 2);
      ++i;
    }
    RC_ASSERT(got == all);
  });
}

TEST(Transcript, AnyBytesGiveValidFiles) {
  rc::check([] {
    TimedTranscript t;
    t.segments = {segment(0, 1, *rc::gen::arbitrary<std::string>(), *rc::gen::arbitrary<std::string>())};
    t.segments[0].words = {{*rc::gen::arbitrary<std::string>(), 0, 1, 0.5}};
    for (const std::string& kind : transcript_kinds()) {
      const std::string text = write_transcript(t, kind);
      RC_ASSERT(is_utf8(text));
      if (kind == "json") RC_ASSERT(!nlohmann::json::parse(text).empty());
    }
  });
}

TEST(Transcript, UnknownKindsAreRefused) {
  try {
    write_transcript({}, "doc");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::usage);
    EXPECT_THAT(error.what(), HasSubstr("txt, srt, vtt"));
  }
  EXPECT_EQ(write_transcript({}, "txt"), "");
  EXPECT_EQ(write_transcript({}, "srt"), "");
  EXPECT_EQ(write_transcript({}, "vtt"), "WEBVTT\n\n");
}

}  // namespace
}  // namespace consonant
