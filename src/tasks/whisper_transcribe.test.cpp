// SPDX-License-Identifier: Apache-2.0
#include "tasks/whisper_transcribe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "decode/random.hpp"
#include "tasks/fake_window_model.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const WhisperVocabulary v = fake_vocabulary();
constexpr int64_t second = 16000;
using Sound = std::vector<float>;
using State = FakeWindowModel::State;

// A sound that comes and goes as speech does, and says what the fake model is to hear: `value` is its strength. Bursts
// of 30 ms are so little loud sound that few letters are enough for it.
void say(Sound& to, double seconds, float value, int64_t burst = 480) {
  for (int64_t i = 0; i < int64_t(seconds * double(second)); ++i) {
    to.push_back(i % 4000 < burst ? (i % 2 == 0 ? value : -value) : 0.001f * value);
  }
}
void be_silent(Sound& to, double seconds) { to.resize(to.size() + size_t(seconds * double(second)), 0.0f); }

float loudest(std::span<const float> samples) {
  float top = 0;
  for (const float x : samples.subspan(200, samples.size() - 400)) top = std::max(top, x);
  return top;
}

// The text of a window as the fake model hears it: "<0>text<500>" with timestamps in steps.
std::vector<int32_t> tokens_of(const std::string& text) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '<') {
      tokens.push_back(static_cast<unsigned char>(text[i]));
    } else {
      size_t used = 0;
      tokens.push_back(v.first_timestamp + std::stoi(text.substr(i + 1), &used));
      i += used + 1;
    }
  }
  return tokens;
}

// Writes what `heard` says of a window.
FakeWindowModel::Script writes(std::function<std::string(const State&)> heard, float no_speech = -20, float sure = 20) {
  return [=](const State& s) {
    for (auto i = size_t(v.first_timestamp); i < s.logits.size(); ++i) s.logits[i] = -40;  // together less than a text
    s.logits[size_t(v.no_speech)] = no_speech;
    s.logits[258] = 3;
    const auto tokens = tokens_of(heard(s));
    const size_t n = s.text.size();
    s.logits[size_t(n < tokens.size() ? tokens[n] : v.end)] = -20 + sure;
  };
}

// The logits are those of a text's first token: the prompt has been read.
bool begins(const State& s) { return s.text.empty() && s.prompt.back() == v.transcribe; }

struct Trial {
  FakeWindowModel model;
  Tokenizer tokenizer = fake_tokenizer();
  std::vector<TimedSegment> seen;
  explicit Trial(FakeWindowModel::Script script) : model(v, std::move(script)) {}
  TimedTranscript run(const Sound& sound, SpeechOptions options = {.language = "en", .beam = 1}) {
    FakeSource source(sound);
    const WhisperParts parts{model, v, tokenizer};
    const auto keep = [&](const TimedSegment& s) { return seen.push_back(s), true; };
    return transcribe_speech(parts, source, options, {.on_segment = keep});
  }
};

std::vector<std::string> texts_of(const TimedTranscript& t) {
  std::vector<std::string> texts;
  for (const TimedSegment& s : t.segments) texts.push_back(s.text);
  return texts;
}

void check_times(const TimedTranscript& t) {
  double at = 0;
  for (const TimedSegment& s : t.segments) {
    ASSERT_GE(s.start, at);
    ASSERT_GE(s.end, s.start);
    at = s.start;
    for (const TimedWord& w : s.words) {
      ASSERT_GE(w.start, at);
      ASSERT_GE(w.end, w.start);
      at = w.end;
    }
    ASSERT_LE(at, s.end);
    at = s.end;
  }
  ASSERT_LE(at, t.duration);
}

TEST(Speech, SeeksToTheEndOfTheLastWholeSegment) {
  std::vector<double> starts;
  // The strength of the sound grows with time, so that it says where a window begins.
  Trial trial(writes([&](const State& s) -> std::string {
    if (begins(s)) starts.push_back(double(s.samples[200]));
    return starts.size() == 1 ? "<0> one<500><500> two<1000><1000> cut" : "<0> three<700>";
  }));
  Sound sound;
  say(sound, 40, 0.5f);
  for (size_t i = 0; i < sound.size(); i += 2) sound[i] = std::fabs(sound[i]) * (1 + float(i) / 1e6f);
  const auto t = trial.run(sound);
  EXPECT_THAT(texts_of(t), ElementsAre(" one", " two", " three"));
  EXPECT_EQ(t.text, " one two three");
  ASSERT_THAT(starts, SizeIs(2));
  EXPECT_FLOAT_EQ(float(starts[1]), sound[20 * second]);
  EXPECT_DOUBLE_EQ(t.segments[1].start, 10);
  EXPECT_DOUBLE_EQ(t.segments[2].start, 20);
  EXPECT_DOUBLE_EQ(t.segments[2].end, 34);
  EXPECT_DOUBLE_EQ(t.duration, 40);
  EXPECT_EQ(trial.model.encoded, 2);
  EXPECT_EQ(trial.seen.size(), 3u);
  EXPECT_EQ(t.language, "en");
  EXPECT_EQ(t.language_probability, 1);
  check_times(t);
}

TEST(Speech, ContextIsTheTextSoFar) {
  std::vector<std::string> prompts;
  const auto script = writes([&](const State& s) -> std::string {
    if (begins(s)) {
      std::string prompt;
      for (const int32_t id : s.prompt) prompt += id < 256 ? std::string(1, char(id)) : "";
      prompts.push_back(prompt);
    }
    return "<0> w" + std::to_string(prompts.size()) + "<1500>";
  });
  Sound sound;
  say(sound, 80, 0.5f);
  Trial trial(script);
  trial.run(sound);
  EXPECT_THAT(prompts, ElementsAre("", " w1", " w1 w2"));
  prompts.clear();
  Trial named(script);
  named.run(sound, {.language = "en", .prompt = "Names", .beam = 1});
  EXPECT_THAT(prompts, ElementsAre(" Names", " Names w1", " Names w1 w2"));
  prompts.clear();
  Trial alone(script);
  alone.run(sound, {.language = "en", .beam = 1, .context = false});
  EXPECT_THAT(prompts, ElementsAre("", "", ""));
}

TEST(Speech, SilenceHumAndHissAreNotHeard) {
  Trial trial(writes([](const State&) { return "<0> Thank you.<100>"; }));
  Sound silence, hum, hiss;
  be_silent(silence, 70);
  Random random(4);
  for (int64_t i = 0; i < 10 * second; ++i) {
    hum.push_back(0.3f * float(std::sin(0.1 * double(i))));
    hiss.push_back(float(random.uniform() - 0.5));
  }
  for (const Sound* sound : {&silence, &hum, &hiss}) {
    const auto t = trial.run(*sound);
    EXPECT_THAT(t.segments, SizeIs(0));
    EXPECT_DOUBLE_EQ(t.duration, double(sound->size()) / second);
  }
  EXPECT_EQ(trial.model.encoded, 0);
}

TEST(Speech, WhatTheModelDoubtsIsDropped) {
  Sound sound;
  say(sound, 50, 0.5f);
  // No speech, and improbable: by the model's own test. Then a few words, less improbable.
  for (const float sure : {3.0f, 4.8f}) {
    Trial trial(writes([](const State&) { return "<0> You<1500>"; }, 9, sure));
    EXPECT_THAT(trial.run(sound).segments, SizeIs(0)) << sure;
  }
  Trial trial(writes([](const State&) { return "<0> You<1500>"; }));
  EXPECT_THAT(trial.run(sound).segments, SizeIs(2));
}

TEST(Speech, EmptyAndTinySoundsAreEmptyTranscripts) {
  Trial trial(writes([](const State&) { return "<0> no<100>"; }));
  for (const double seconds : {0.0, 0.02, 0.099}) {
    Sound sound;
    say(sound, seconds, 0.5f);
    const auto t = trial.run(sound);
    EXPECT_THAT(t.segments, SizeIs(0));
    EXPECT_EQ(t.stop, Stop::end_token);
  }
  EXPECT_EQ(trial.model.encoded, 0);
}

TEST(Speech, ARepeatedTextIsDecodedAgainWithoutContext) {
  int with = 0, without = 0;
  // With a context the model repeats it; without one it hears what is said.
  Trial trial(writes([&](const State& s) -> std::string {
    const bool context = s.prompt.front() == v.previous;
    if (begins(s)) ++(context ? with : without);
    return context ? "<0> first words<1500>" : without == 1 ? "<0> first words<1500>" : "<0> others now<1500>";
  }));
  Sound sound;
  say(sound, 60, 0.5f);
  const auto t = trial.run(sound);
  EXPECT_THAT(texts_of(t), ElementsAre(" first words", " others now"));
  EXPECT_EQ(with, 1);
}

TEST(Speech, SoundThatATextLeavesOutIsDecodedAnew) {
  // The text ends after four seconds, the sound goes on.
  int windows = 0;
  const auto script = writes([&](const State& s) -> std::string {
    if (begins(s)) ++windows;
    return windows == 1 ? "<0> The first of two sentences.<200>" : "<0> And the other one.<300>";
  });
  Sound sound;
  say(sound, 4, 0.5f, 1000);
  be_silent(sound, 1);
  say(sound, 5, 0.5f, 1000);
  be_silent(sound, 0.5);
  for (const bool context : {true, false}) {
    windows = 0;
    Trial trial(script);
    const auto t = trial.run(sound, {.language = "en", .beam = 1, .context = context});
    EXPECT_THAT(texts_of(t), ElementsAre(" The first of two sentences.", " And the other one.")) << context;
    EXPECT_GE(t.segments[1].start, 4);
    check_times(t);
  }
}

TEST(Speech, TooFewLettersForALoudWindowAreDecodedWithoutContextThenShortened) {
  std::vector<bool> contexts;
  Trial trial(writes([&](const State& s) -> std::string {
    if (begins(s)) contexts.push_back(s.prompt.front() == v.previous);
    std::string sentence;
    Random random(3);
    for (int i = 0; i < 140; ++i) sentence += char('a' + random.next() % 26);
    return contexts.size() == 1  ? "<0> " + sentence + "<1500>"
           : contexts.size() < 4 ? "<0> Few<1500>"
                                 : "<0> More<1500>";
  }));
  Sound sound;
  say(sound, 30, 0.5f, 2000);
  say(sound, 3, 0.5f, 2000);
  be_silent(sound, 1);
  say(sound, 20, 0.5f, 2000);
  const auto t = trial.run(sound);
  EXPECT_THAT(contexts, ElementsAre(false, true, false, true, false));
  ASSERT_THAT(t.segments, SizeIs(3));
  EXPECT_EQ(t.segments[1].text, " Few");
  EXPECT_NEAR(t.segments[1].end, 33.5, 0.5);
  EXPECT_NEAR(t.segments[2].end, 54, 0.5);
  check_times(t);
}

// An hour of faint noise that isn't quite steady: the model writes the same into every window.
TEST(Speech, ALoopEndsWhereTheModelIsUnsure) {
  Trial trial(writes([](const State&) { return "<0> Thanks for watching the video!<1500>"; }, -1.0f, 19.0f));
  Sound sound;
  Random random(9);
  for (int64_t i = 0; i < 600 * second; ++i) {
    sound.push_back(float(random.uniform() - 0.5) * (i / (3 * second) % 2 == 0 ? 0.01f : 0.02f));
  }
  const auto t = trial.run(sound);
  EXPECT_THAT(t.segments, SizeIs(testing::Le(1u)));
}

TEST(Speech, AFirstWordIsNotInTheSilenceBeforeIt) {
  for (const bool words : {false, true}) {
    for (const bool noise : {false, true}) {
      Trial trial(writes([](const State&) { return "<0> Hello there<1000>"; }));
      trial.model.align_at = [&](const std::vector<float>&, size_t row, size_t) {
        // The first token's row has its weight at the start, as a first word's often has; the others in the speech.
        return row < 4 ? 0.0 : (noise ? 455.0 : 20.0) + double(row) * 5;
      };
      Sound sound;
      be_silent(sound, 9);
      if (noise) {
        Random random(1);
        for (float& x : sound) x = 0.004f * float(random.uniform() - 0.5);
      }
      say(sound, 4, 0.5f);
      const auto t = trial.run(sound, {.language = "en", .beam = 1, .word_times = words});
      ASSERT_THAT(t.segments, SizeIs(1));
      EXPECT_GT(t.segments[0].start, 8.9) << words << noise;
      EXPECT_LT(t.segments[0].start, 9.1);
      check_times(t);
    }
  }
}

TEST(Speech, PiecesSayTheSameInAnyBatch) {
  const auto script = [](const State& s) {
    Random random(uint64_t(double(loudest(s.samples)) * 1e6) * 100 + s.text.size());
    for (size_t i = 'a'; i <= 'z'; ++i) s.logits[i] = float(5 * random.uniform());
    s.logits[size_t(v.end)] = float(2 + 3 * random.uniform());
    s.logits[size_t(v.first_timestamp) + s.text.size() * 37 % 1500] = 5;
  };
  Sound sound;
  for (int i = 0; i < 10; ++i) {
    say(sound, 7 + i % 3, 0.2f + 0.01f * float(i));
    be_silent(sound, i % 4 == 0 ? 5.0 : 0.4);
  }
  std::vector<TimedTranscript> all;
  for (const int batch : {1, 2, 5, 16}) {
    Trial trial(script);
    all.push_back(trial.run(sound, {.language = "en", .beam = 2, .best_of = 2, .context = false, .batch = batch}));
    EXPECT_LE(trial.model.most_windows, size_t(batch) + 1);
    check_times(all.back());
    ASSERT_EQ(all.back().segments.size(), all[0].segments.size());
    for (size_t i = 0; i < all[0].segments.size(); ++i) {
      EXPECT_EQ(all.back().segments[i].tokens, all[0].segments[i].tokens);
      EXPECT_EQ(all.back().segments[i].start, all[0].segments[i].start);
    }
  }
  EXPECT_GT(all[0].segments.size(), 5u);
}

// Models that write anything at all.
TEST(Speech, EndsWithGoodTimesForAnyModel) {
  for (uint64_t salt = 1; salt <= 16; ++salt) {
    Random draw(salt);
    const auto below = [&](uint64_t n) { return int(draw.next() % n); };
    const auto kind = salt % 4;
    Trial trial([=](const State& s) {
      Random random(salt + s.text.size() * 31 + uint64_t(double(loudest(s.samples)) * 1e5));
      for (float& x : s.logits) x = float(4 * random.uniform());
      if (kind == 1) s.logits[size_t(v.end)] = -100;  // never ends
      if (kind == 2) {                                // stamps wherever they may be, as near as may be
        for (int64_t i = v.first_timestamp; i < v.size; ++i) s.logits[size_t(i)] = 50 - float(i - v.first_timestamp);
      }
      if (kind == 3) s.logits[size_t(v.first_timestamp)] = 60, s.logits['a'] = 50;
    });
    trial.model.align_at = [=](const std::vector<float>&, size_t row, size_t) {
      return double((row * 7919 + salt % 1000) % 1490);
    };
    Sound sound;
    for (int i = 0; i < 3; ++i) {
      say(sound, below(14), 0.1f * float(1 + i));
      be_silent(sound, below(9));
    }
    say(sound, 0.5, 0.3f);
    const bool context = below(2) == 0;
    const auto t = trial.run(sound, {.language = "en",
                                     .beam = 1 + below(2),
                                     .best_of = 1,
                                     .fallback = false,
                                     .context = context,
                                     .timestamps = below(4) > 0,
                                     .word_times = below(2) == 0});
    check_times(t);
    EXPECT_EQ(t.stop, Stop::end_token);
    EXPECT_LE(trial.model.encoded, 4 + int(t.duration));  // two seconds in two windows at least
  }
}

TEST(Speech, FaultsOfTheModelAreErrors) {
  Trial trial([](const State& s) { s.logits['a'] = std::numeric_limits<float>::quiet_NaN(); });
  Sound sound;
  say(sound, 5, 0.5f);
  try {
    trial.run(sound, {.language = "en", .timestamps = false});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::failed);
    EXPECT_THAT(error.what(), HasSubstr("not numbers"));
  }
}

TEST(Speech, StopsWhenToldTo) {
  Sound sound;
  say(sound, 100, 0.5f);
  const auto script = writes([](const State&) { return "<0> one<700><700> two<1500>"; });
  {
    Trial trial(script);
    FakeSource source(sound);
    int left = 3;
    const WhisperParts parts{trial.model, v, trial.tokenizer};
    const auto t = transcribe_speech(parts, source, {.language = "en", .beam = 1},
                                     {.on_segment = [&](const TimedSegment&) { return --left > 0; }});
    EXPECT_EQ(t.stop, Stop::cancelled);
    EXPECT_THAT(t.segments, SizeIs(3));
  }
  std::atomic<bool> cancelled{false};
  int calls = 0;
  Trial trial([&](const State& s) {
    script(s);
    if (++calls == 6) cancelled = true;
  });
  auto t = trial.run(sound, {.language = "en", .beam = 1, .cancelled = &cancelled});
  EXPECT_EQ(t.stop, Stop::cancelled);
  EXPECT_EQ(calls, 6);
  EXPECT_THAT(t.segments, SizeIs(0));
  t = trial.run(sound, {.language = "en", .beam = 1, .deadline = Deadline::after(0)});
  EXPECT_EQ(t.stop, Stop::deadline);
}

TEST(Speech, LanguagesAreDetectedOrRefused) {
  Sound sound;
  be_silent(sound, 40);
  say(sound, 5, 0.5f);
  const auto script = [](const State& s) {
    s.logits[258] = 0, s.logits[259] = 2, s.logits[260] = 1;
    s.logits[size_t(s.text.empty() ? v.first_timestamp : s.text.size() == 1 ? 'x' : v.end)] = 20;
    EXPECT_TRUE(s.prompt.size() == 1 || s.prompt[1] == 259);
  };
  Trial trial(script);
  const auto t = trial.run(sound, {.beam = 1});
  EXPECT_EQ(t.language, "fr");
  EXPECT_NEAR(t.language_probability, std::exp(2) / (1 + std::exp(1) + std::exp(2)), 1e-6);
  EXPECT_THAT(t.segments, SizeIs(1));
  trial.run(sound, {.language = "French", .beam = 1});
  for (const char* unknown : {"xx", "de", "Klingon"}) {
    EXPECT_THROW(trial.run(sound, {.language = unknown}), Error) << unknown;
  }
  EXPECT_THROW(trial.run(sound, {.language = "fr", .batch = 4}), Error);
  EXPECT_THROW(trial.run(sound, {.language = "fr", .beam = 0}), Error);

  FakeSource source(sound);
  const auto ranked = detect_speech_language({trial.model, v, trial.tokenizer}, source);
  ASSERT_THAT(ranked, SizeIs(3));
  EXPECT_EQ(ranked[0].first, "fr");
  EXPECT_EQ(ranked[2].first, "en");

  const WhisperVocabulary english = fake_vocabulary(false);
  FakeWindowModel model(english, writes([](const State&) { return "<0> x<100>"; }));
  FakeSource again(sound);
  const auto only = transcribe_speech({model, english, trial.tokenizer}, again, {.language = "fr", .beam = 1});
  EXPECT_EQ(only.language, "en");
  EXPECT_THAT(only.warnings, ElementsAre(HasSubstr("English only")));
}

// An hour in the memory of a window: nothing but the last windows is kept, which the buffer's size shows.
TEST(Speech, AnHourEnds) {
  struct Hour : FakeSource {
    Hour() : FakeSource({}) {}
    int64_t read(std::span<float> to) override {
      const auto count = std::min<int64_t>(int64_t(to.size()), 3600 * second - at);
      for (int64_t i = 0; i < count; ++i, ++at) {
        const bool speaks = at / (60 * second) % 10 == 0;
        to[size_t(i)] = speaks && at % 4000 < 480 ? 0.3f : 0.0f;
      }
      return count;
    }
    int64_t length() const override { return -1; }
    int64_t at = 0;
  } hour;
  Trial trial(writes([](const State&) { return "<0> Words of a minute.<1500>"; }));
  std::vector<double> done;
  const auto t = transcribe_speech({trial.model, v, trial.tokenizer}, hour, {.language = "en", .beam = 1},
                                   {.on_progress = [&](double now, double all) {
                                     done.push_back(now);
                                     EXPECT_EQ(all, -1);
                                   }});
  EXPECT_DOUBLE_EQ(t.duration, 3600);
  EXPECT_EQ(trial.model.most_windows, 1u);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_GE(t.segments.size(), 6u);
  EXPECT_LE(t.segments.size(), 18u);
  check_times(t);
}

}  // namespace
}  // namespace consonant
