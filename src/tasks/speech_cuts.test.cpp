// SPDX-License-Identifier: Apache-2.0
// Transcripts of recordings of which only the speech was heard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "audio/read.hpp"
#include "tasks/fake_voice_model.hpp"
#include "tasks/fake_window_model.hpp"
#include "tasks/whisper_transcribe.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;

constexpr int64_t rate = AudioSource::rate;
const WhisperVocabulary v = fake_vocabulary();

// Sound whose level changes as speech's does, and silence, by turns: of so many seconds each.
std::vector<float> by_turns(const std::vector<double>& seconds) {
  std::vector<float> samples;
  bool loud = false;
  for (const double s : seconds) {
    const auto end = static_cast<int64_t>(samples.size()) + static_cast<int64_t>(s * rate);
    for (auto i = static_cast<int64_t>(samples.size()); i < end; ++i)
      samples.push_back(loud ? (i % 4000 < 480 ? 0.5f : 0.002f) * (i % 2 ? 1.0f : -1.0f) : 0.0f);
    loud = !loud;
  }
  return samples;
}

// Writes "<0> Ab Cd<10 s>" into every window; "Ab" is heard at 0.8 s of it, "Cd" at 6 s.
class TwoWords : public FakeWindowModel {
 public:
  // `apart`: as two segments, between which lies 4.6 s.
  explicit TwoWords(bool apart = false) : FakeWindowModel(v, apart ? two_segments : one_segment) {
    align_at = [](const std::vector<float>&, size_t row, size_t) {
      const double at[] = {40, 60, 80, 300, 320, 340, 400};
      return row < 3 ? 0 : at[std::min<size_t>(row - 3, 6)];
    };
  }

 private:
  static constexpr int32_t t = 267;  // first timestamp

  static void one_segment(const State& s) { write({t, ' ', 'A', 'b', ' ', 'C', 'd', t + 500, v.end}, s); }
  static void two_segments(const State& s) {
    write({t, ' ', 'A', 'b', t + 230, t + 230, ' ', 'C', 'd', t + 500, v.end}, s);
  }
  static void write(const std::vector<int32_t>& text, const State& s) {
    s.logits[static_cast<size_t>(text[std::min(s.text.size(), text.size() - 1)])] = 5;
  }
};

TimedTranscript transcribe(FakeWindowModel& model, const std::vector<float>& samples, bool words,
                           std::vector<double>* progress = nullptr) {
  FakeVoiceModel voice;
  const Tokenizer tokenizer = fake_tokenizer();
  const auto source = audio_of_samples(samples, "sound");
  SpeechOptions options;
  options.language = "en", options.beam = 1, options.voice = &voice, options.word_times = words;
  SpeechCallbacks callbacks;
  if (progress) callbacks.on_progress = [&](double done, double) { progress->push_back(done); };
  TimedTranscript t = transcribe_speech({model, v, tokenizer}, *source, options, callbacks);
  EXPECT_EQ(voice.resets, 1);
  EXPECT_NEAR(t.duration, double(samples.size()) / rate, 1e-9);
  return t;
}

TEST(SpeechCuts, OfSilenceThereIsNoText) {
  TwoWords model;
  for (const double seconds : {0.0, 0.02, 10.0, 100.0}) {
    const auto t = transcribe(model, by_turns({seconds}), true);
    EXPECT_EQ(t.text, "");
    EXPECT_TRUE(t.segments.empty());
  }
  EXPECT_EQ(model.encoded, 0);
  EXPECT_EQ(model.steps, 0);
}

TEST(SpeechCuts, NoSegmentSpansOne) {
  for (const bool words : {false, true}) {
    TwoWords model;
    std::vector<double> progress;
    const auto t = transcribe(model, by_turns({10, 4, 20, 5, 6}), words, &progress);
    EXPECT_EQ(model.encoded, 1);
    ASSERT_EQ(t.segments.size(), 2u);
    const TimedSegment &a = t.segments[0], &b = t.segments[1];
    EXPECT_EQ(a.text, " Ab");
    EXPECT_EQ(b.text, " Cd");
    EXPECT_EQ(t.text, " Ab Cd");
    EXPECT_THAT(a.tokens, ElementsAre(v.first_timestamp, ' ', 'A', 'b'));
    EXPECT_THAT(b.tokens, ElementsAre(' ', 'C', 'd', v.first_timestamp + 500));
    EXPECT_GE(a.start, 9.5);
    EXPECT_LE(a.end, 14.5);
    EXPECT_GE(b.start, 33.5);
    EXPECT_LE(b.end, 39.5);
    EXPECT_EQ(b.id, 1);
    ASSERT_EQ(a.words.size(), words ? 1u : 0u);
    ASSERT_EQ(b.words.size(), words ? 1u : 0u);
    if (words) {
      EXPECT_EQ(a.words[0].word, " Ab");
      // The window starts 0.4 s before the speech, and an alignment at its start.
      EXPECT_NEAR(a.words[0].start, 9.6, 0.04);
      EXPECT_LE(a.words[0].end, 14.5);
      EXPECT_NEAR(b.words[0].start, 33.6 + 6 - 4.8, 0.08);
    }
    EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
    EXPECT_NEAR(progress.back(), 45, 1e-9);
  }
}

// A word ends where the next one starts, by the alignment; here that lies behind the cut.
TEST(SpeechCuts, NoWordSpansOne) {
  TwoWords model(true);
  const auto t = transcribe(model, by_turns({10, 4, 20, 5, 6}), true);
  ASSERT_EQ(t.segments.size(), 2u);
  ASSERT_EQ(t.segments[0].words.size(), 1u);
  EXPECT_LE(t.segments[0].words[0].end, 14.5);
  EXPECT_LE(t.segments[0].end, 14.5);
  EXPECT_GE(t.segments[1].start, 33.5);
  EXPECT_LE(t.segments[1].words[0].end, 39.5);
}

// Words that the alignment hears beyond the cut keep to their segment, and take some time there.
TEST(SpeechCuts, WordsHeardElsewhereTakeTheirSegmentsTime) {
  for (const double column : {10.0, 400.0}) {
    TwoWords model(true);
    model.align_at = [&](const std::vector<float>&, size_t row, size_t) { return row < 3 ? 0 : column; };
    const auto t = transcribe(model, by_turns({10, 4, 20, 5, 6}), true);
    ASSERT_EQ(t.segments.size(), 2u);
    for (const TimedSegment& s : t.segments) {
      EXPECT_GE(s.end - s.start, 0.0199);
      ASSERT_EQ(s.words.size(), 1u);
      EXPECT_EQ(s.words[0].start, s.start);
      EXPECT_EQ(s.words[0].end, s.end);
    }
    EXPECT_GE(t.segments[0].start, 9.5);
    EXPECT_LE(t.segments[0].end, 14.5);
    // The second reaches from 0.2 s before the cut to what is after it: its word says on which side it is.
    const TimedSegment& b = t.segments[1];
    EXPECT_GE(b.start, column < 100 ? t.segments[0].end : 33.5);
    EXPECT_LE(b.end, column < 100 ? 14.5 : 39.5);
  }
}

// All words lie on one side: the segment keeps to it.
TEST(SpeechCuts, ASegmentDoesntReachOverOne) {
  TwoWords model;
  model.align_at = [](const std::vector<float>&, size_t row, size_t) { return 20 + 5.0 * double(row); };
  const auto t = transcribe(model, by_turns({10, 4, 20, 5, 6}), false);
  ASSERT_EQ(t.segments.size(), 1u);
  EXPECT_EQ(t.segments[0].text, " Ab Cd");
  EXPECT_GE(t.segments[0].start, 9.5);
  EXPECT_LE(t.segments[0].end, 14.5);
  EXPECT_THAT(t.segments[0].tokens,
              ElementsAre(v.first_timestamp, ' ', 'A', 'b', ' ', 'C', 'd', v.first_timestamp + 500));
}

// Times of a recording of several windows grow, and keep within what was heard.
TEST(SpeechCuts, TimesOnlyGrow) {
  const std::vector<double> turns = {3, 8, 30, 50, 5, 2, 100, 41, 4};
  for (const bool context : {true, false}) {
    TwoWords model;
    FakeVoiceModel voice;
    const Tokenizer tokenizer = fake_tokenizer();
    const auto source = audio_of_samples(by_turns(turns), "sound");
    SpeechOptions options;
    options.language = "en", options.beam = 1, options.voice = &voice, options.context = context;
    const auto t = transcribe_speech({model, v, tokenizer}, *source, options);
    ASSERT_GE(t.segments.size(), 3u);
    double last = 0;
    for (const TimedSegment& s : t.segments) {
      EXPECT_LE(last, s.start);
      EXPECT_LE(s.start, s.end);
      last = s.end;
      double at = 0;
      bool heard = false;
      for (size_t i = 0; i < turns.size(); at += turns[i++])
        heard |= i % 2 == 1 && s.start >= at - 0.5 && s.end <= at + turns[i] + 0.5;
      // What is shorter than two seconds stays between two stretches.
      EXPECT_TRUE(heard) << s.start << " - " << s.end;
    }
    EXPECT_LE(last, t.duration);
  }
}

}  // namespace
}  // namespace consonant
