// SPDX-License-Identifier: Apache-2.0
#include "decode/autoregressive.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "base/error.hpp"
#include "formats/meta.hpp"
#include "text/tokenizer.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;

constexpr int32_t unknown = 0, bos = 1, end = 2, first_byte = 3;
int32_t byte(char c) { return first_byte + int32_t(static_cast<unsigned char>(c)); }

// A vocabulary of single bytes, so that characters and stop strings are cut in every place.
std::shared_ptr<Meta> byte_vocabulary() {
  auto meta = std::make_shared<Meta>();
  MetaStrings tokens = {"<unk>", "<s>", "</s>"};
  MetaInts types = {2, 3, 3};
  for (int i = 0; i < 256; ++i) {
    tokens.push_back(meta->keep(fmt::format("<0x{:02X}>", i)));
    types.push_back(6);
  }
  const auto add = [&](const char* key, MetaType type, bool is_array, auto value) {
    meta->add(std::string("tokenizer.ggml.") + key, MetaValue{type, is_array, std::move(value)});
  };
  add("model", MetaType::string, false, std::string_view("llama"));
  add("add_space_prefix", MetaType::boolean, false, false);
  add("bos_token_id", MetaType::u32, false, int64_t(bos));
  add("eos_token_id", MetaType::u32, false, int64_t(end));
  add("unknown_token_id", MetaType::u32, false, int64_t(unknown));
  add("scores", MetaType::f32, true, MetaFloats(tokens.size(), 0));
  add("tokens", MetaType::string, true, std::move(tokens));
  add("token_type", MetaType::i32, true, std::move(types));
  return meta;
}

// A model that says what it is told: token i of the script has logit 5, the others 0. What it is asked is recorded.
class Script : public NextLogits {
 public:
  explicit Script(std::vector<int32_t> tokens) : tokens_(std::move(tokens)), logits_(259) {}
  static Script of(std::string_view text, bool ends = true) {
    std::vector<int32_t> tokens;
    for (const char c : text) tokens.push_back(byte(c));
    if (ends) tokens.push_back(end);
    return Script(std::move(tokens));
  }

  std::span<const float> step(std::span<const int32_t> tokens) override {
    asked.emplace_back(tokens.begin(), tokens.end());
    std::fill(logits_.begin(), logits_.end(), 0.0f);
    logits_[size_t(tokens_.at(at_++))] = 5;
    return logits_;
  }
  void read(std::span<const int32_t> tokens) override { read_.emplace_back(tokens.begin(), tokens.end()); }

  std::vector<std::vector<int32_t>> asked, read_;

 private:
  std::vector<int32_t> tokens_;
  std::vector<float> logits_;
  size_t at_ = 0;
};

class Autoregressive : public testing::Test {
 protected:
  Autoregressive() : meta(byte_vocabulary()), tokenizer(Tokenizer::load(*meta)) {
    options.limits.context = 1000;
    options.limits.end_tokens = ends;
  }
  Continuation run(Script model, const std::vector<int32_t>& prompt = {bos, 10, 11}) {
    pieces.clear();
    return generate(model, &tokenizer, prompt, 0, options,
                    [this](std::string_view text, std::span<const int32_t> tokens) {
                      pieces.emplace_back(text);
                      piece_tokens.insert(piece_tokens.end(), tokens.begin(), tokens.end());
                      return pieces.size() < cancel_at;
                    });
  }

  std::shared_ptr<Meta> meta;
  Tokenizer tokenizer;
  std::vector<int32_t> ends = {end};
  Autoregression options;
  std::vector<std::string> pieces;
  std::vector<int32_t> piece_tokens;
  size_t cancel_at = 1000;
};

TEST_F(Autoregressive, EndsAtTheEndToken) {
  const Continuation c = run(Script::of("hi"));
  EXPECT_EQ(c.text, "hi");
  EXPECT_THAT(c.tokens, ElementsAre(byte('h'), byte('i'), end));
  EXPECT_EQ(c.stop, Stop::end_token);
  EXPECT_THAT(pieces, ElementsAre("h", "i", ""));
  EXPECT_EQ(piece_tokens, c.tokens);
}

TEST_F(Autoregressive, FeedsThePromptThenEachToken) {
  Script script = Script::of("hi");
  generate(script, &tokenizer, std::vector<int32_t>{bos, 10, 11}, 1, options, {});
  EXPECT_THAT(script.asked, ElementsAre(ElementsAre(10, 11), ElementsAre(byte('h')), ElementsAre(byte('i'))));
}

TEST_F(Autoregressive, WithoutATokenizerThereAreTokensAlone) {
  options.limits.end_tokens = {}, options.limits.max_tokens = 2;
  Script script = Script::of("hi");
  std::vector<int32_t> tokens;
  const auto take = [&](std::string_view text, std::span<const int32_t> ids) {
    EXPECT_EQ(text, "");
    tokens.insert(tokens.end(), ids.begin(), ids.end());
    return true;
  };
  const Continuation c = generate(script, nullptr, std::vector<int32_t>{bos, 10}, 1, options, take);
  EXPECT_EQ(c.text, "");
  EXPECT_THAT(c.tokens, ElementsAre(byte('h'), byte('i')));
  EXPECT_EQ(tokens, c.tokens);
}

TEST_F(Autoregressive, ReadsALongPromptInParts) {
  options.prompt_chunk = 2;
  Script script = Script::of("");
  generate(script, &tokenizer, std::vector<int32_t>{1, 10, 11, 12, 13, 14}, 1, options, {});
  EXPECT_THAT(script.read_, ElementsAre(ElementsAre(10, 11), ElementsAre(12, 13)));
  EXPECT_THAT(script.asked, ElementsAre(ElementsAre(14)));
}

TEST_F(Autoregressive, EndTokensCanBeIgnored) {
  options.limits.end_tokens = {};
  options.limits.max_tokens = 3;
  const Continuation c = run(Script({byte('a'), end, byte('b')}));
  EXPECT_EQ(c.text, "ab");
  EXPECT_EQ(c.stop, Stop::caller_limit);
}

TEST_F(Autoregressive, CharactersComeWhole) {
  const Continuation c = run(Script::of("a\xC3\xA9\xF0\x9F\x98\x80"));
  EXPECT_THAT(pieces, ElementsAre("a", "\xC3\xA9", "\xF0\x9F\x98\x80", ""));
  EXPECT_EQ(piece_tokens, c.tokens);
}

TEST_F(Autoregressive, ACutCharacterIsReplacedAtTheEnd) { EXPECT_EQ(run(Script::of("a\xC3")).text, "a\xEF\xBF\xBD"); }

TEST_F(Autoregressive, StopStringsAcrossTokensAreNeverShown) {
  options.stop = {"END"};
  const Continuation c = run(Script::of("one ENtwo END three"));
  EXPECT_EQ(c.text, "one ENtwo ");
  EXPECT_EQ(c.stop, Stop::stop_string);
  std::string shown;
  for (const std::string& piece : pieces) shown += piece;
  EXPECT_EQ(shown, c.text);
  EXPECT_EQ(piece_tokens, c.tokens);
}

TEST_F(Autoregressive, WhatOnlyBeganAStopStringIsShownAtTheEnd) {
  options.stop = {"END"};
  EXPECT_EQ(run(Script::of("one EN")).text, "one EN");
}

TEST_F(Autoregressive, Limits) {
  options.limits.max_tokens = 2;
  EXPECT_EQ(run(Script::of("abc")).stop, Stop::caller_limit);
  options.limits.max_tokens = -1;
  options.limits.context = 5;
  const Continuation full = run(Script::of("abc"));
  EXPECT_EQ(full.stop, Stop::context_full);
  EXPECT_EQ(full.text, "ab");
  options.limits.max_tokens = 0;
  Script script = Script::of("abc");
  EXPECT_EQ(generate(script, &tokenizer, std::vector<int32_t>{1}, 0, options, {}).stop, Stop::caller_limit);
  EXPECT_TRUE(script.asked.empty());
}

TEST_F(Autoregressive, ADeadlineEndsIt) {
  options.limits.deadline = Deadline::after(-1);
  const Continuation c = run(Script::of("abc"));
  EXPECT_EQ(c.stop, Stop::deadline);
  EXPECT_TRUE(c.tokens.empty());
}

TEST_F(Autoregressive, CancellingKeepsWhatThereIs) {
  cancel_at = 2;
  const Continuation c = run(Script::of("abcdef"));
  EXPECT_EQ(c.stop, Stop::cancelled);
  EXPECT_EQ(c.text, "ab");
  std::atomic<bool> cancelled{true};
  options.limits.cancelled = &cancelled;
  EXPECT_EQ(run(Script::of("abc")).tokens.size(), 0u);
}

// exp(5) / (exp(5) + 258)
TEST_F(Autoregressive, LogprobsOnRequest) {
  EXPECT_TRUE(run(Script::of("a")).logprobs.empty());
  options.logprobs = true;
  const Continuation c = run(Script::of("a"));
  ASSERT_EQ(c.logprobs.size(), c.tokens.size());
  for (const float p : c.logprobs) EXPECT_NEAR(p, 5 - std::log(std::exp(5.0) + 258), 1e-5);
}

TEST_F(Autoregressive, PenaltiesSeeThePrompt) {
  options.sampling.presence_penalty = 10;
  const Continuation c = run(Script::of("hi"), {bos, byte('h')});
  EXPECT_NE(c.tokens.at(0), byte('h'));
}

TEST_F(Autoregressive, AnEmptyPromptIsBadInput) {
  Script script = Script::of("a");
  try {
    generate(script, &tokenizer, {}, 0, options, {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.exit(), Exit::input);
  }
}

}  // namespace
}  // namespace consonant
