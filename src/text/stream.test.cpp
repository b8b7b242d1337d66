// SPDX-License-Identifier: Apache-2.0
#include "text/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/byte_level.hpp"
#include "base/error.hpp"
#include "base/utf8.hpp"
#include "text/test_vocabulary.hpp"

namespace consonant {
namespace {

using testing_text::byte_level;
using testing_text::MetaBuilder;

// A vocabulary whose ids 0 to 255 are the bytes, 256 is a control token and 257 on are these pieces.
class Streaming {
 public:
  explicit Streaming(const std::vector<std::string>& pieces = {}) {
    std::vector<std::string> tokens;
    for (int b = 0; b < 256; ++b) tokens.push_back(byte_level(std::string(1, static_cast<char>(b))));
    tokens.push_back("<|end|>");
    for (const std::string& piece : pieces) tokens.push_back(byte_level(piece));
    MetaInts types(tokens.size(), 1);
    types[256] = 3;
    meta_.string("model", "gpt2").string("pre", "gpt-2").strings("tokens", tokens).strings("merges", {});
    meta_.integers("token_type", types);
    tokenizer = std::make_unique<Tokenizer>(Tokenizer::load(*meta_));
  }
  std::unique_ptr<Tokenizer> tokenizer;

 private:
  MetaBuilder meta_;
};

std::vector<int32_t> ids_of(std::string_view bytes) {
  std::vector<int32_t> ids;
  for (const char c : bytes) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  TextStream stream(tokenizer);
  std::string out;
  for (const int32_t id : ids) {
    const std::string_view piece = stream.push(id);
    EXPECT_TRUE(is_utf8(piece));
    out += piece;
  }
  return out += stream.flush();
}

const std::string mixed = "aé你🙂z";  // characters of one to four bytes

// Every way to cut the text into two or three tokens.
TEST(TextStream, AllSplits) {
  for (size_t i = 1; i < mixed.size(); ++i)
    for (size_t j = i; j < mixed.size(); ++j) {
      std::vector<std::string> pieces = {mixed.substr(0, i)};
      if (j > i) pieces.push_back(mixed.substr(i, j - i));
      pieces.push_back(mixed.substr(j));
      std::vector<int32_t> ids;
      std::vector<std::string> longer;
      for (const std::string& piece : pieces) {
        // One byte is a token of the vocabulary already.
        ids.push_back(piece.size() == 1 ? static_cast<uint8_t>(piece[0]) : 257 + static_cast<int32_t>(longer.size()));
        if (piece.size() > 1) longer.push_back(piece);
      }
      const Streaming s(longer);
      EXPECT_EQ(streamed(*s.tokenizer, ids), mixed) << i << " " << j;
    }
}

TEST(TextStream, WholeCharactersAtOnce) {
  const Streaming s;
  TextStream stream(*s.tokenizer);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xF0), "");
  EXPECT_EQ(stream.push(0x9F), "");
  EXPECT_EQ(stream.push(0x99), "");
  EXPECT_EQ(stream.push(0x82), "🙂");
  EXPECT_EQ(stream.flush(), "");
}

TEST(TextStream, CutOffAtTheEnd) {
  const Streaming s;
  TextStream stream(*s.tokenizer);
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.push(0xBD), "");
  EXPECT_EQ(stream.flush(), "\uFFFD");
  EXPECT_EQ(stream.flush(), "");
}

TEST(TextStream, IllFormed) {
  const Streaming s;
  TextStream stream(*s.tokenizer);
  EXPECT_EQ(stream.push(0xE4), "");
  EXPECT_EQ(stream.push('x'), "\uFFFDx");
  EXPECT_EQ(stream.push(0xFF), "\uFFFD");
}

TEST(TextStream, SpecialTokens) {
  const Streaming s;
  EXPECT_EQ(streamed(*s.tokenizer, {'a', 256, 'b'}), "ab");
  TextStream shown(*s.tokenizer, {.skip_special = false});
  EXPECT_EQ(shown.push(256), "<|end|>");
}

RC_GTEST_PROP(TextStream, AsTheWholeTextRepaired, ()) {
  static const Streaming s;
  const auto bytes = *rc::gen::container<std::string>(
      rc::gen::elementOf(std::string("a\x80\xBF\xC3\xA9\xE0\xED\xA0\xE4\xBD\xF0\x9F\x99\x82\xF4\x90\xFF")));
  RC_ASSERT(streamed(*s.tokenizer, ids_of(bytes)) == sanitize_utf8(bytes));
}

struct Stopped {
  std::string text;
  int which;
};

Stopped stopped(std::vector<std::string> stops, const std::vector<std::string>& pieces) {
  StopStrings watch(std::move(stops));
  Stopped out{"", -1};
  for (const std::string& piece : pieces) {
    out.text += watch.push(piece);
    if (watch.matched()) break;
  }
  out.text += watch.flush();
  out.which = watch.which();
  return out;
}

TEST(StopStrings, HoldsBackWhatMayBeginOne) {
  StopStrings watch({"\nUser:"});
  EXPECT_EQ(watch.push("Hi"), "Hi");
  EXPECT_EQ(watch.push("!\nUs"), "!");
  EXPECT_EQ(watch.push("es\n"), "\nUses");
  EXPECT_FALSE(watch.matched());
  EXPECT_EQ(watch.push("User: x"), "");
  EXPECT_TRUE(watch.matched());
  EXPECT_EQ(watch.stop(), "\nUser:");
  EXPECT_EQ(watch.push("more"), "");
  EXPECT_EQ(watch.flush(), "");
}

TEST(StopStrings, FlushGivesWhatWasHeld) {
  StopStrings watch({"abc"});
  EXPECT_EQ(watch.push("xab"), "x");
  EXPECT_EQ(watch.flush(), "ab");
  EXPECT_EQ(watch.push("c"), "c");
}

TEST(StopStrings, Overlapping) {
  EXPECT_EQ(stopped({"aab"}, {"aa", "aab!"}).text, "aa");
  EXPECT_EQ(stopped({"b", "ab"}, {"xa", "b"}).text, "x");
  EXPECT_EQ(stopped({"b", "ab"}, {"xa", "b"}).which, 1);
  EXPECT_EQ(stopped({"abcd", "bc"}, {"abce"}).text, "a");
  EXPECT_EQ(stopped({}, {"a", "b"}).text, "ab");
}

TEST(StopStrings, RefusesWhatCannotBeOne) {
  EXPECT_THROW(StopStrings({"a", ""}), Error);
  EXPECT_THROW(StopStrings({"\xFF"}), Error);
}

RC_GTEST_PROP(StopStrings, CutsChangeNothing, ()) {
  const auto ab = [](int most) {
    return rc::gen::suchThat(rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab"))),
                             [most](const std::string& s) { return static_cast<int>(s.size()) <= most; });
  };
  const auto stops = *rc::gen::container<std::vector<std::string>>(rc::gen::nonEmpty(ab(5)));
  const auto pieces = *rc::gen::container<std::vector<std::string>>(ab(6));
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  // The definition: the first end of any stop string, and the longest that ends there.
  Stopped wanted{all, -1};
  for (size_t end = 1; end <= all.size() && wanted.which < 0; ++end)
    for (size_t i = 0; i < stops.size(); ++i) {
      if (!std::string_view(all).substr(0, end).ends_with(stops[i])) continue;
      if (wanted.which >= 0 && stops[static_cast<size_t>(wanted.which)].size() >= stops[i].size()) continue;
      wanted = {all.substr(0, end - stops[i].size()), static_cast<int>(i)};
    }
  const Stopped found = stopped(stops, pieces);
  RC_ASSERT(found.text == wanted.text);
  RC_ASSERT(found.which == wanted.which);
}

}  // namespace
}  // namespace consonant
