// SPDX-License-Identifier: Apache-2.0
#include "tasks/whisper_window.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"
#include "decode/random.hpp"
#include "tasks/fake_window_model.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const WhisperVocabulary v = fake_vocabulary();

bool always() { return true; }

int encode(WindowModel& model, float value = 0.1f) {
  float peak = -std::numeric_limits<float>::infinity();
  return model.encode(std::vector<float>(size_t(model.window_samples() + 2 * model.margin_samples()), value), peak);
}

// Writes `text` between two timestamps, then the end; `sure` is the lead of its logits.
FakeWindowModel::Script says(std::string text, float sure = 20, float no_speech = -20) {
  return [=](const FakeWindowModel::State& s) {
    s.logits[size_t(v.no_speech)] = no_speech;
    const size_t n = s.text.size();
    const bool stamps = s.prompt.back() != v.no_timestamps;
    const size_t at = stamps ? n - 1 : n;
    int32_t next = v.end;
    if (stamps && n == 0) {
      next = v.first_timestamp;
    } else if (at < text.size()) {
      next = int32_t(static_cast<unsigned char>(text[at]));
    } else if (stamps && at == text.size()) {
      next = v.first_timestamp + 100;
    }
    s.logits[size_t(next)] = -20 + sure;
  };
}

std::vector<int32_t> ids(const std::string& text) { return {text.begin(), text.end()}; }

TEST(CompressionRatio, IsZlibs) {
  EXPECT_EQ(compression_ratio(""), 0);
  EXPECT_EQ(compression_ratio(" \n"), 0);
  const std::string jfk =
      " And so my fellow Americans, ask not what your country can do for you, ask what you can do for your country.";
  EXPECT_NEAR(compression_ratio(jfk), 1.3544303797468353, 1e-12);
  std::string loop;
  for (int i = 0; i < 20; ++i) loop += " Thank you.";
  EXPECT_GT(compression_ratio(loop), 5);
}

TEST(Window, PromptHasItsParts) {
  FakeWindowModel model(v, says(""));
  const Tokenizer tokenizer = fake_tokenizer();
  const WindowDecoder decoder(model, v, tokenizer);
  EXPECT_THAT(decoder.prompt({1, {}}, {.language = 259}), ElementsAre(v.start, 259, v.transcribe));
  EXPECT_THAT(decoder.prompt({1, {}}, {.language = 259, .translate = true, .timestamps = false}),
              ElementsAre(v.start, 259, v.translate, v.no_timestamps));
  const auto context = ids("ab"), initial = ids("xy");
  EXPECT_THAT(decoder.prompt({1, context, 0, initial}, {.language = 258}),
              ElementsAre(v.previous, 'x', 'y', 'a', 'b', v.start, 258, v.transcribe));
  const std::vector<int32_t> longer(300, 'a'), spell(300, 'x');
  auto ids = decoder.prompt({1, longer}, {.language = 258});
  EXPECT_EQ(ids.size(), 1u + 223 + 3);
  ids = decoder.prompt({1, longer, 0, spell}, {.language = 258});
  EXPECT_EQ(ids.size(), 1u + 223 + 3);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 'x'), 111);
  ids = decoder.prompt({1, context, 0, spell}, {.language = 258});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 'x'), 221);
  ids = decoder.prompt({1, {}, 0, spell}, {.language = 258});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 'x'), 223);

  const WhisperVocabulary english = fake_vocabulary(false);
  const WindowDecoder alone(model, english, tokenizer);
  EXPECT_THAT(alone.prompt({1, {}}, {}), ElementsAre(v.start));
}

TEST(Window, GreedyForksNothing) {
  FakeWindowModel model(v, says(" Hi."));
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  const int window = encode(model);
  const WindowRequest request{window, {}};
  const auto texts = decoder.decode({&request, 1}, {.language = 258, .beam = 1}, always);
  ASSERT_TRUE(texts);
  EXPECT_EQ((*texts)[0].text, " Hi.");
  EXPECT_THAT((*texts)[0].tokens, ElementsAre(v.first_timestamp, ' ', 'H', 'i', '.', v.first_timestamp + 100));
  EXPECT_EQ((*texts)[0].logprobs.size(), 7u);
  EXPECT_TRUE((*texts)[0].ended);
  EXPECT_EQ((*texts)[0].attempts, 1);
  EXPECT_EQ(model.forks, 1);  // of the prompt, which another attempt would start from
  EXPECT_EQ(model.steps, 7);
  const auto strict = decoder.decode({&request, 1}, {.language = 258, .beam = 1, .fallback = false}, always);
  EXPECT_EQ((*strict)[0].tokens, (*texts)[0].tokens);
  EXPECT_EQ(model.forks, 1);
  const auto plain = decoder.decode({&request, 1}, {.language = 258, .timestamps = false, .beam = 1}, always);
  EXPECT_EQ((*plain)[0].text.substr(1), "Hi.");
  EXPECT_NE((*plain)[0].text[0], ' ');  // which the script wanted, but may not begin a text
  model.forget(window);
}

TEST(Window, LanguagesAreASoftmaxOverTheirs) {
  FakeWindowModel model(v, [](const FakeWindowModel::State& s) {
    s.logits[258] = 1, s.logits[259] = 2, s.logits[260] = -1, s.logits['a'] = 50;
  });
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  const int window = encode(model);
  const auto p = decoder.languages(window);
  const double sum = std::exp(1.0) + std::exp(2.0) + std::exp(-1.0);
  EXPECT_THAT(
      p, ElementsAre(testing::DoubleNear(std::exp(1.0) / sum, 1e-9), testing::DoubleNear(std::exp(2.0) / sum, 1e-9),
                     testing::DoubleNear(std::exp(-1.0) / sum, 1e-9)));
  model.forget(window);
}

TEST(Window, NoSpeechIsReadAtTheStart) {
  FakeWindowModel model(v, [](const FakeWindowModel::State& s) {
    // Only after `start` itself, which a context precedes.
    if (s.prompt.back() == v.start) s.logits[size_t(v.no_speech)] = 0;
    s.logits[size_t(s.text.empty() ? v.first_timestamp : v.end)] = 5;
  });
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  const int window = encode(model);
  const auto context = ids("before");
  const WindowRequest request{window, context};
  const auto texts = decoder.decode({&request, 1}, {.language = 258}, always);
  const double p = 1 / (1 + std::exp(5.0) + double(v.size - 2) * std::exp(-20.0));
  EXPECT_NEAR((*texts)[0].no_speech_prob, p, 1e-6);
  model.forget(window);
}

// At temperature 0 the text repeats itself; drawn, it soon ends.
TEST(Window, RepetitionFallsBackToSampling) {
  FakeWindowModel model(v, [](const FakeWindowModel::State& s) {
    if (s.text.empty()) {
      s.logits[size_t(v.first_timestamp)] = 0;
    } else {
      s.logits["abcd"[s.text.size() % 4]] = 0;
      s.logits[size_t(v.end)] = -1.0f;
      for (int32_t c = '0'; c <= '9'; ++c) s.logits[size_t(c)] = -0.5f;
    }
  });
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  const int window = encode(model);
  const WindowRequest request{window, {}, 5};
  const WindowSettings settings{.language = 258, .beam = 1};
  const auto texts = decoder.decode({&request, 1}, settings, always);
  EXPECT_GT((*texts)[0].attempts, 1);
  EXPECT_GT((*texts)[0].temperature, 0);
  EXPECT_LE((*texts)[0].compression_ratio, 2.4);
  const auto again = decoder.decode({&request, 1}, settings, always);
  EXPECT_EQ((*again)[0].tokens, (*texts)[0].tokens);
  const auto strict = decoder.decode({&request, 1}, {.language = 258, .beam = 1, .fallback = false}, always);
  EXPECT_EQ((*strict)[0].attempts, 1);
  EXPECT_TRUE((*strict)[0].doubtful);
  EXPECT_FALSE((*strict)[0].ended);
  EXPECT_EQ((*strict)[0].tokens.size(), 224u);
  model.forget(window);
}

// Whatever the number of attempts and of samples, a prompt is read once, and so is what samples say alike.
TEST(Window, NothingIsReadTwice) {
  std::string loop;
  for (int i = 0; i < 20; ++i) loop += "ab";
  FakeWindowModel model(v, says(loop, 60));
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  const int window = encode(model);
  const auto context = ids("before");
  const WindowRequest request{window, context};
  const auto texts = decoder.decode({&request, 1}, {.language = 258, .beam = 1}, always);
  EXPECT_TRUE((*texts)[0].doubtful);
  EXPECT_EQ((*texts)[0].attempts, 6);
  const size_t prompt = 1 + context.size() + 3;
  EXPECT_EQ(model.tokens, prompt + 6 * (loop.size() + 2));
  EXPECT_EQ(model.most_pieces, 1u);
  EXPECT_EQ(model.forks, 5);  // the last attempt takes the prompt's own sequence
  model.forget(window);
}

TEST(Window, SilenceIsNotTriedAgain) {
  FakeWindowModel model(v, says(" You", 5, 10));
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  const int window = encode(model);
  const WindowRequest request{window, {}};
  const auto texts = decoder.decode({&request, 1}, {.language = 258, .beam = 1}, always);
  EXPECT_TRUE((*texts)[0].silent());
  EXPECT_EQ((*texts)[0].attempts, 1);
  model.forget(window);
}

TEST(Window, NeverEndingTextsAreBounded) {
  for (const int beam : {1, 5}) {
    FakeWindowModel model(v, [](const FakeWindowModel::State& s) {
      for (size_t i = 0; i < 256; ++i) s.logits[i] = float((s.text.size() * 7919 + i * 104729) % 97) / 10;
    });
    const Tokenizer tokenizer = fake_tokenizer();
    WindowDecoder decoder(model, v, tokenizer);
    const int window = encode(model);
    const std::vector<int32_t> context(400, 'a');
    const WindowRequest request{window, context};
    const auto texts = decoder.decode({&request, 1}, {.language = 258, .beam = beam}, always);
    EXPECT_LE((*texts)[0].tokens.size(), 224u);
    EXPECT_LE(model.steps, 6 * 225);
    model.forget(window);
  }
}

TEST(Window, ABatchSaysWhatEachSaysAlone) {
  const auto script = [](const FakeWindowModel::State& s) {
    // A random text that depends on the sound.
    Random random(uint64_t(s.samples[0] * 1000) * 1000 + s.text.size());
    for (size_t i = 'a'; i <= 'z'; ++i) s.logits[i] = float(6 * random.uniform());
    s.logits[size_t(v.end)] = float(3 + 3 * random.uniform());
    s.logits[size_t(v.first_timestamp)] = 1;
  };
  FakeWindowModel model(v, script);
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  std::vector<WindowRequest> requests;
  for (int i = 0; i < 4; ++i) requests.push_back({encode(model, 0.1f * float(i + 1)), {}, uint64_t(i)});
  for (const int beam : {1, 3}) {
    const WindowSettings settings{.language = 258, .timestamps = false, .beam = beam, .best_of = 3};
    const auto together = decoder.decode(requests, settings, always);
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto alone = decoder.decode({&requests[i], 1}, settings, always);
      EXPECT_EQ((*alone)[0].tokens, (*together)[i].tokens);
      EXPECT_EQ((*alone)[0].logprobs, (*together)[i].logprobs);
      EXPECT_EQ((*alone)[0].temperature, (*together)[i].temperature);
    }
  }
  for (const auto& r : requests) model.forget(r.window);
}

TEST(Window, FaultsAndStopsLeaveNothingOpen) {
  FakeWindowModel model(v, [](const FakeWindowModel::State& s) {
    if (s.text.size() == 3) s.logits['a'] = std::numeric_limits<float>::quiet_NaN();
    s.logits['b'] = 3;
  });
  const Tokenizer tokenizer = fake_tokenizer();
  WindowDecoder decoder(model, v, tokenizer);
  const int window = encode(model);
  const WindowRequest request{window, {}};
  for (const int beam : {1, 4}) {
    try {
      decoder.decode({&request, 1}, {.language = 258, .timestamps = false, .beam = beam}, always);
      FAIL() << "took NaN";
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::failed);
      EXPECT_THAT(error.what(), HasSubstr("not numbers"));
    }
    int left = 3;
    EXPECT_FALSE(decoder.decode({&request, 1}, {.language = 258, .beam = beam}, [&] { return left-- > 0; }));
  }
  model.forget(window);
}

}  // namespace
}  // namespace consonant
