// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/utf8.hpp"
#include "text/test_vocabulary.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_text::byte_level;
using testing_text::MetaBuilder;
using Ids = std::vector<int32_t>;
using Strings = std::vector<std::string>;
using Pairs = std::vector<std::pair<std::string, std::string>>;

// Byte-level: the bytes are ids 0 to 255, then what the merges make, then <s>, </s>, <|eot_id|> (control), <think>
// (added).
struct ByteLevel {
  Strings tokens, merges;
  MetaInts types;
  MetaBuilder meta;

  explicit ByteLevel(const Pairs& pairs = {{"h", "i"}, {" ", "hi"}}) {
    for (int b = 0; b < 256; ++b) tokens.push_back(byte_level(std::string(1, static_cast<char>(b))));
    for (const auto& [left, right] : pairs) {
      merges.push_back(byte_level(left) + " " + byte_level(right));
      tokens.push_back(byte_level(left + right));
    }
    types.assign(tokens.size(), 1);
    for (const char* special : {"<s>", "</s>", "<|eot_id|>"}) tokens.push_back(special), types.push_back(3);
    tokens.push_back("<think>"), types.push_back(4);
    meta.string("model", "gpt2").string("pre", "gpt-2");
    meta.integer("bos_token_id", id("<s>")).integer("eos_token_id", id("</s>"));
  }
  int32_t id(const std::string& token) const {
    return static_cast<int32_t>(std::find(tokens.begin(), tokens.end(), token) - tokens.begin());
  }
  const Meta& build() {
    return *meta.strings("tokens", tokens).integers("token_type", types).strings("merges", merges);
  }
};

// SentencePiece: <unk>, <s>, </s>, the byte tokens, then pieces with falling scores.
struct Spm {
  Strings tokens = {"<unk>", "<s>", "</s>"};
  MetaInts types = {2, 3, 3};
  MetaFloats scores = {0, 0, 0};
  MetaBuilder meta;

  explicit Spm(const Strings& pieces = {"▁", "h", "i", "hi", "▁hi", "x"}) {
    for (int b = 0; b < 256; ++b) add(fmt::format("<0x{:02X}>", b), 6, 0);
    for (const std::string& piece : pieces) add(piece, 1, -static_cast<double>(scores.size()));
    meta.string("model", "llama").integer("bos_token_id", 1).integer("eos_token_id", 2);
  }
  void add(const std::string& token, int64_t type, double score) {
    tokens.push_back(token), types.push_back(type), scores.push_back(score);
  }
  int32_t id(const std::string& token) const {
    return static_cast<int32_t>(std::find(tokens.begin(), tokens.end(), token) - tokens.begin());
  }
  const Meta& build() {
    return *meta.strings("tokens", tokens).integers("token_type", types).numbers("scores", scores);
  }
};

std::string refusal(const Meta& meta) {
  try {
    Tokenizer::load(meta);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    EXPECT_THAT(error.what(), HasSubstr("test.gguf"));
    return error.what();
  }
  return "accepted";
}

template <class Change>
std::string refusal_of_byte_level(Change&& change) {
  ByteLevel v;
  change(v);
  return refusal(v.build());
}

template <class Change>
std::string refusal_of_spm(Change&& change) {
  Spm v;
  change(v);
  return refusal(v.build());
}

TEST(ByteLevelTokenizer, SpecialTokensInText) {
  ByteLevel v;
  const Tokenizer t = Tokenizer::load(v.build());
  const int32_t hi = v.id("hi"), space_hi = v.id(byte_level(" hi")), end = v.id("<|eot_id|>"), think = v.id("<think>");
  EXPECT_THAT(t.encode("hi<|eot_id|>hi"), ElementsAre(hi, end, hi));
  EXPECT_THAT(t.encode("hi<|eot_id|> hi"), ElementsAre(hi, end, space_hi));
  EXPECT_THAT(t.encode("<think>hi", {.parse_special = false}), ElementsAre(think, hi));
  EXPECT_THAT(t.encode("<s>", {.parse_special = false}), ElementsAre('<', 's', '>'));
  EXPECT_THAT(t.encode("<s>"), ElementsAre(v.id("<s>")));
  EXPECT_THAT(t.encode(""), ElementsAre());
}

TEST(ByteLevelTokenizer, BeginningAndEnd) {
  ByteLevel v;
  EXPECT_THAT(Tokenizer::load(v.build()).encode("a", {.add_special = true}), ElementsAre('a'));
  v.meta.boolean("add_bos_token", true).boolean("add_eos_token", true);
  const Tokenizer t = Tokenizer::load(v.build());
  EXPECT_THAT(t.encode("a", {.add_special = true}), ElementsAre(t.bos(), 'a', t.eos()));
  EXPECT_THAT(t.encode("", {.add_special = true}), ElementsAre(t.bos(), t.eos()));
  EXPECT_THAT(t.encode("a"), ElementsAre('a'));
}

// llama-bpe says by its name that a text begins with BOS and that whole words come first; a folder may say otherwise.
TEST(ByteLevelTokenizer, WhatThePreTokenizersNameImplies) {
  ByteLevel v(Pairs{{"a", "b"}, {"b", "c"}});
  v.tokens.push_back("abc"), v.types.push_back(1);
  const int32_t abc = v.id("abc");
  EXPECT_THAT(Tokenizer::load(v.build()).encode("abc"), ElementsAre(v.id("ab"), 'c'));
  v.meta.string("pre", "llama-bpe");
  const Tokenizer t = Tokenizer::load(v.build());
  EXPECT_TRUE(t.add_bos());
  EXPECT_THAT(t.encode("abc"), ElementsAre(abc));
  v.meta.meta()->replace("tokenizer.consonant.ignore_merges", {MetaType::boolean, false, false});
  EXPECT_THAT(Tokenizer::load(v.build()).encode("abc"), ElementsAre(v.id("ab"), 'c'));
}

TEST(ByteLevelTokenizer, NormalFormC) {
  ByteLevel v;
  v.meta.string("pre", "qwen2");
  EXPECT_THAT(Tokenizer::load(v.build()).encode("e\u0301"), ElementsAre(0xC3, 0xA9));
  v.meta.meta()->replace("tokenizer.consonant.normalizer", {MetaType::string, false, std::string_view("none")});
  EXPECT_THAT(Tokenizer::load(v.build()).encode("e\u0301"), ElementsAre('e', 0xCC, 0x81));
  v.meta.meta()->replace("tokenizer.consonant.normalizer", {MetaType::string, false, std::string_view("NFKC")});
  EXPECT_THAT(refusal(v.build()), HasSubstr("NFKC"));
}

TEST(ByteLevelTokenizer, TheEarliestAndThenTheLongestSpecialToken) {
  ByteLevel v;
  for (const char* added : {"ab", "abcd", "bcde", "\n", "\n\n"}) v.tokens.push_back(added), v.types.push_back(4);
  const Tokenizer t = Tokenizer::load(v.build());
  EXPECT_THAT(t.encode("abcde"), ElementsAre(v.id("abcd"), 'e'));
  EXPECT_THAT(t.encode("abce"), ElementsAre(v.id("ab"), 'c', 'e'));
  EXPECT_THAT(t.encode("\n\n\n"), ElementsAre(v.id("\n\n"), v.id("\n")));
  EXPECT_THAT(t.encode("xbcdeab"), ElementsAre('x', v.id("bcde"), v.id("ab")));
  EXPECT_THAT(t.encode("abc"), ElementsAre(v.id("ab"), 'c'));
}

TEST(ByteLevelTokenizer, BytesWithoutATokenAreLeftOut) {
  ByteLevel v(Pairs{{"a", "b"}});
  v.tokens[0x04] = "";
  const Tokenizer t = Tokenizer::load(v.build());
  testing::internal::CaptureStderr();
  EXPECT_THAT(t.encode("a\x04!"), ElementsAre('a', '!'));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("0x04"));
}

TEST(ByteLevelTokenizer, Decoding) {
  ByteLevel v;
  v.tokens.push_back("[PAD1]"), v.types.push_back(5);
  const Tokenizer t = Tokenizer::load(v.build());
  const Ids ids = {v.id("<s>"), v.id(byte_level(" hi")), v.id("<think>"), v.id("[PAD1]"), 0xC3, 0xA9};
  EXPECT_EQ(t.decode(ids), "<s> hi<think>é");
  EXPECT_EQ(t.decode(ids, {.skip_special = true}), " hi<think>é");
  EXPECT_EQ(t.bytes(0xC3), "\xC3");
  EXPECT_EQ(t.token_text(' '), "Ġ");
  EXPECT_EQ(t.find("Ġ"), ' ');
  EXPECT_EQ(t.find("nothing"), -1);
  EXPECT_THROW(t.decode(Ids{-1}), Error);
  EXPECT_THROW(t.decode(Ids{t.size()}), Error);
}

TEST(ByteLevelTokenizer, EndsOfAGeneration) {
  ByteLevel v;
  v.tokens.push_back("<|im_end|>"), v.types.push_back(1);  // not a control token: text like any other
  const Tokenizer t = Tokenizer::load(v.build());
  EXPECT_THAT(t.end_ids(), ElementsAre(v.id("</s>"), v.id("<|eot_id|>")));
  EXPECT_TRUE(t.is_end(v.id("<|eot_id|>")));
  EXPECT_FALSE(t.is_end(v.id("<s>")));
  EXPECT_EQ(t.eot(), v.id("<|eot_id|>"));
  v.meta.integer("eot_token_id", v.id("<think>"));
  EXPECT_TRUE(Tokenizer::load(v.build()).is_end(v.id("<think>")));
}

// Where <|return|> ends an answer, <|end|> only closes one of its messages.
TEST(ByteLevelTokenizer, MessagesOfOneAnswer) {
  ByteLevel v;
  v.tokens.push_back("<|end|>"), v.types.push_back(3);
  EXPECT_TRUE(Tokenizer::load(v.build()).is_end(v.id("<|end|>")));
  v.tokens.push_back("<|return|>"), v.types.push_back(3);
  const Tokenizer t = Tokenizer::load(v.build());
  EXPECT_FALSE(t.is_end(v.id("<|end|>")));
  EXPECT_TRUE(t.is_end(v.id("<|return|>")));
}

TEST(ByteLevelTokenizer, WithoutTypes) {
  ByteLevel v;
  const Meta& meta = *v.meta.strings("tokens", v.tokens).strings("merges", v.merges);
  const Tokenizer t = Tokenizer::load(meta);
  EXPECT_THAT(t.encode("<s>a"), ElementsAre(v.id("<s>"), 'a'));
  EXPECT_EQ(t.type(v.id("<s>")), TokenType::control);
  EXPECT_EQ(t.type(v.id("<think>")), TokenType::normal);
}

TEST(ByteLevelTokenizer, IllFormedText) {
  ByteLevel v;
  const Tokenizer t = Tokenizer::load(v.build());
  try {
    t.encode("abc\xFFz");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    EXPECT_THAT(error.what(), HasSubstr("byte 3 (0xFF)"));
  }
}

TEST(ByteLevelTokenizer, RefusesWhatCannotBeRight) {
  using V = ByteLevel;
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.meta.string("model", "bert"); }), HasSubstr("'bert'"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.meta.string("pre", "x"); }), HasSubstr("--override-kv"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.tokens.clear(), v.types.clear(); }), HasSubstr("tokens is empty"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.types.pop_back(); }), HasSubstr("261 values for 262 tokens"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.types[7] = 9; }), HasSubstr("token 7 has type 9"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.types[7] = -1; }), HasSubstr("token 7 has type -1"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.tokens[9] = "a"; }), HasSubstr("'a' is both token 9 and token 97"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.tokens[9] = "a\xFF"; }), HasSubstr("token 9 isn't UTF-8 (byte 1"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.tokens['a'] = "none"; }), HasSubstr("0x61"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.meta.integer("bos_token_id", 262); }), HasSubstr("ids 0 to 261"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.meta.integer("eos_token_id", -1); }), HasSubstr("eos_token_id is -1"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.meta.string("eos_token_id", "x"); }), HasSubstr("eos_token_id"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.merges.push_back("a"); }), HasSubstr("merge 2 ('a')"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.merges.push_back("a "); }), HasSubstr("two tokens"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.merges.push_back(" a"); }), HasSubstr("two tokens"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.merges.push_back(""); }), HasSubstr("two tokens"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.merges.push_back("none a"); }), HasSubstr("first part is no token"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.merges.push_back("a none"); }), HasSubstr("second part is no token"));
  EXPECT_THAT(refusal_of_byte_level([](V& v) { v.merges.push_back("a b"); }), HasSubstr("what it makes is no token"));
}

TEST(ByteLevelTokenizer, RefusesMissingKeys) {
  ByteLevel v;
  v.meta.strings("tokens", v.tokens).integers("token_type", v.types);
  EXPECT_THAT(refusal(*v.meta), HasSubstr("tokenizer.ggml.merges"));
  EXPECT_THAT(refusal(*MetaBuilder()), HasSubstr("tokenizer.ggml.model"));
  EXPECT_THAT(refusal(*MetaBuilder().string("model", "llama")), HasSubstr("tokenizer.ggml.tokens"));
  EXPECT_THAT(refusal(*MetaBuilder().string("model", "llama").strings("tokens", {"<unk>"})),
              HasSubstr("tokenizer.ggml.scores"));
}

TEST(ByteLevelTokenizer, RefusesToAddWhatThereIsNot) {
  const auto spm = [](const std::string& which) {
    MetaBuilder meta;
    meta.string("model", "llama").strings("tokens", {"<unk>"}).integers("token_type", {2}).numbers("scores", {0});
    return refusal(*meta.boolean("add_" + which + "_token", true));
  };
  EXPECT_THAT(spm("bos"), HasSubstr("tokenizer.ggml.bos_token_id"));
  EXPECT_THAT(spm("eos"), HasSubstr("tokenizer.ggml.eos_token_id"));
}

TEST(SpmTokenizer, SpacesAndSpecialTokens) {
  Spm v;
  const int32_t hi = v.id("hi"), mark_hi = v.id("▁hi"), mark = v.id("▁"), end = v.id("</s>");
  const Tokenizer prefixed = Tokenizer::load(v.build());
  EXPECT_THAT(prefixed.encode("hi"), ElementsAre(mark_hi));
  EXPECT_THAT(prefixed.encode(" hi"), ElementsAre(mark, mark_hi));
  EXPECT_THAT(prefixed.encode("hi</s>hi"), ElementsAre(mark_hi, end, mark_hi));
  EXPECT_THAT(prefixed.encode("hi</s> hi"), ElementsAre(mark_hi, end, mark, mark_hi));
  EXPECT_THAT(prefixed.encode("hi", {.add_special = true}), ElementsAre(prefixed.bos(), mark_hi));
  EXPECT_THAT(prefixed.encode(""), ElementsAre());
  Spm w;
  w.meta.boolean("add_space_prefix", false);
  const Tokenizer plain = Tokenizer::load(w.build());
  EXPECT_THAT(plain.encode("hi</s>hi"), ElementsAre(hi, end, hi));
  EXPECT_THAT(plain.encode("hi</s> hi"), ElementsAre(hi, end, mark_hi));
  EXPECT_EQ(prefixed.decode(prefixed.encode("hi</s> hi hi")), "hi</s> hi hi");
  EXPECT_EQ(plain.decode(plain.encode(" hi</s>hi")), " hi</s>hi");
}

TEST(SpmTokenizer, ByteFallback) {
  Spm v;
  v.meta.boolean("add_space_prefix", false);
  const Tokenizer t = Tokenizer::load(v.build());
  EXPECT_THAT(t.encode("xé"), ElementsAre(v.id("x"), v.id("<0xC3>"), v.id("<0xA9>")));
  EXPECT_EQ(t.decode(t.encode("xé🙂")), "xé🙂");
  EXPECT_EQ(t.decode(t.encode("<0x41>")), "<0x41>");
  EXPECT_EQ(t.bytes(v.id("<0x0A>")), "\n");
}

TEST(SpmTokenizer, UnknownCharacters) {
  const MetaBuilder meta = MetaBuilder()
                               .string("model", "llama")
                               .strings("tokens", {"<unk>", "a"})
                               .integers("token_type", {2, 1})
                               .numbers("scores", {0, 0})
                               .boolean("add_space_prefix", false);
  const Tokenizer t = Tokenizer::load(*meta);
  EXPECT_EQ(t.unknown(), 0);
  EXPECT_THAT(t.encode("aéüa é"), ElementsAre(1, 0, 1, 0));
  EXPECT_EQ(t.decode(Ids{1, 0}, {.skip_special = true}), "a");
}

// The best score first, whatever the order of ids; equal scores from the left.
TEST(SpmTokenizer, ScoresOrderTheMerges) {
  Spm v({"a", "b", "c", "ab", "bc"});
  v.meta.boolean("add_space_prefix", false);
  v.scores[static_cast<size_t>(v.id("ab"))] = -2;
  v.scores[static_cast<size_t>(v.id("bc"))] = 1;
  EXPECT_THAT(Tokenizer::load(v.build()).encode("abc"), ElementsAre(v.id("a"), v.id("bc")));
  v.scores[static_cast<size_t>(v.id("ab"))] = 1;
  EXPECT_THAT(Tokenizer::load(v.build()).encode("abc"), ElementsAre(v.id("ab"), v.id("c")));
  v.scores[static_cast<size_t>(v.id("ab"))] = -0.0;
  v.scores[static_cast<size_t>(v.id("bc"))] = 0.0;
  EXPECT_THAT(Tokenizer::load(v.build()).encode("abc"), ElementsAre(v.id("ab"), v.id("c")));
}

// Control tokens, bytes and unused pieces are no results of merging, though their text may be spelled out.
TEST(SpmTokenizer, OnlyPiecesOfTextMerge) {
  Spm v({"▁", "a", "b"});
  v.add("ab", 3, 5);
  v.add("ba", 5, 5);
  v.meta.boolean("add_space_prefix", false);
  const Tokenizer t = Tokenizer::load(v.build());
  EXPECT_THAT(t.encode("abba", {.parse_special = false}), ElementsAre(v.id("a"), v.id("b"), v.id("b"), v.id("a")));
}

TEST(SpmTokenizer, TokensThatGoOnAfterASpace) {
  Spm v({"▁", "a", "b", "a▁", "a▁b", "▁b"});
  v.meta.boolean("add_space_prefix", false);
  EXPECT_THAT(Tokenizer::load(v.build()).encode("a b"), ElementsAre(v.id("a▁b")));
}

TEST(SpmTokenizer, RefusesWhatCannotBeRight) {
  using V = Spm;
  EXPECT_THAT(refusal_of_spm([](V& v) { v.scores.push_back(0); }), HasSubstr("scores: 266 values for 265 tokens"));
  EXPECT_THAT(refusal_of_spm([](V& v) { v.scores[5] = NAN; }), HasSubstr("score of token 5"));
  EXPECT_THAT(refusal_of_spm([](V& v) { v.tokens[20] = "<0xGG>"; }), HasSubstr("'<0xGG>'"));
  EXPECT_THAT(refusal_of_spm([](V& v) { v.types[20] = 1, v.types[0] = 1; }), HasSubstr("no byte token <0x11>"));
  EXPECT_THAT(refusal_of_spm([](V& v) { v.types[20] = 1; }), "accepted");
}

rc::Gen<std::string> any_text() {
  const std::u32string alphabet = U"hix ab\n\t\u00E9\u4F60\U0001F642<s>/|";
  return rc::gen::map(rc::gen::container<std::vector<char32_t>>(rc::gen::elementOf(alphabet)),
                      [](const std::vector<char32_t>& chars) {
                        std::string text;
                        for (const char32_t c : chars) append_utf8(text, c);
                        return text;
                      });
}

RC_GTEST_PROP(RoundTrip, ByteLevel, ()) {
  ByteLevel v;
  const Tokenizer t = Tokenizer::load(v.build());
  const std::string text = *any_text();
  RC_ASSERT(t.decode(t.encode(text)) == text);
  RC_ASSERT(t.decode(t.encode(text, {.parse_special = false})) == text);
}

RC_GTEST_PROP(RoundTrip, SentencePiece, ()) {
  Spm v;
  v.meta.boolean("add_space_prefix", *rc::gen::arbitrary<bool>());
  const Tokenizer t = Tokenizer::load(v.build());
  const std::string text = *any_text();
  RC_ASSERT(t.decode(t.encode(text)) == text);
  RC_ASSERT(t.decode(t.encode(text, {.parse_special = false})) == text);
}

// A million of one letter is one word: quadratic work would take minutes.
TEST(LongWords, OneLetter) {
  ByteLevel v(Pairs{{"a", "a"}, {"aa", "aa"}});
  const std::string text(1'000'000, 'a');
  EXPECT_EQ(Tokenizer::load(v.build()).encode(text), Ids(250'000, v.id("aaaa")));
  Spm s({"a", "aa", "aaaa"});
  s.meta.boolean("add_space_prefix", false);
  EXPECT_EQ(Tokenizer::load(s.build()).encode(text), Ids(250'000, s.id("aaaa")));
}

}  // namespace
}  // namespace consonant
