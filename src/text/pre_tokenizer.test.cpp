// SPDX-License-Identifier: Apache-2.0
#include "text/pre_tokenizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "formats/hf_tokenizer.hpp"
#include "text/normalize.hpp"
#include "text/test_vocabulary.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing_text::MetaBuilder;

const PreTokenizerRule& rule(std::string_view name) {
  for (const PreTokenizerRule& r : pre_tokenizer_rules())
    if (r.name == name) return r;
  throw std::runtime_error("no such rule");
}

std::vector<std::string> split(std::string_view name, std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view piece : Splitter(rule(name)).split(text)) out.emplace_back(piece);
  return out;
}

TEST(Splitter, WordsOfTheFamilies) {
  const std::string text = "I'm  here,\n\n it's 12345!";
  EXPECT_THAT(split("gpt-2", text), ElementsAre("I", "'m", " ", " here", ",", "\n\n", " it", "'s", " 12345", "!"));
  EXPECT_THAT(split("llama-bpe", text),
              ElementsAre("I", "'m", " ", " here", ",\n\n", " it", "'s", " ", "123", "45", "!"));
  EXPECT_THAT(split("qwen2", text),
              ElementsAre("I", "'m", " ", " here", ",\n\n", " it", "'s", " ", "1", "2", "3", "4", "5", "!"));
  EXPECT_THAT(split("smollm", text),
              ElementsAre("I", "'m", " ", " here", ",", "\n\n", " it", "'s", " ", "1", "2", "3", "4", "5", "!"));
  EXPECT_THAT(split("deepseek-v3", text),
              ElementsAre("I", "'m", " ", " here", ",\n\n", " it", "'s", " ", "123", "45", "!"));
  EXPECT_THAT(split("gpt-4o", "HelloWorld don't x/\n"), ElementsAre("Hello", "World", " don't", " x", "/\n"));
  EXPECT_THAT(split("tekken", "HelloWorld 123"), ElementsAre("Hello", "World", " ", "1", "2", "3"));
}

TEST(Splitter, CaseOfContractions) {
  EXPECT_THAT(split("llama-bpe", "IT'S"), ElementsAre("IT", "'S"));
  EXPECT_THAT(split("gpt-2", "IT'S"), ElementsAre("IT", "'", "S"));
}

// A lookahead must not see past the piece that the pattern before has cut.
TEST(Splitter, PiecesAreTextsOfTheirOwn) { EXPECT_THAT(split("smollm", "a  1"), ElementsAre("a", "  ", "1")); }

TEST(Splitter, SpacesAreUnicodes) {
  EXPECT_THAT(split("gpt-2", "a\u3000\u2003b"), ElementsAre("a", "\u3000", "\u2003", "b"));
  // U+180E was a space once; PCRE2 still calls it one.
  EXPECT_THAT(split("gpt-2", "!\u180E!"), ElementsAre("!\u180E!"));
}

TEST(Splitter, Empty) { EXPECT_THAT(split("gpt-2", ""), ElementsAre()); }

rc::Gen<std::string> text_of(std::u32string alphabet) {
  return rc::gen::map(rc::gen::container<std::vector<char32_t>>(rc::gen::elementOf(alphabet)),
                      [](const std::vector<char32_t>& chars) {
                        std::string text;
                        for (const char32_t c : chars) append_utf8(text, c);
                        return text;
                      });
}

RC_GTEST_PROP(Splitter, LosesNothing, ()) {
  const std::string text =
      *text_of(U"aB1'sll \t\r\n.,$/\u00E9\u0301\u00A0\u3000\u4F60\u3042\uAC00\u180E\u200B\U0001F642");
  for (const PreTokenizerRule& r : pre_tokenizer_rules()) {
    std::string joined;
    for (const std::string_view piece : Splitter(r).split(text)) {
      RC_ASSERT(!piece.empty());
      RC_ASSERT(is_utf8(piece));
      joined += piece;
    }
    RC_ASSERT(joined == text);
  }
}

// A long run of anything is cut in time that its length determines, on whatever stack the matcher has.
TEST(Splitter, LongRuns) {
  for (const PreTokenizerRule& r : pre_tokenizer_rules()) {
    const Splitter splitter(r);
    for (const std::string_view unit : {"a", "A", " ", "\n", "7", "!", "'", "\u4F60", "\u0301", " \n", "\u00A0"}) {
      std::string text;
      for (int i = 0; i < 60'000; ++i) text += unit;
      size_t bytes = 0;
      for (const std::string_view piece : splitter.split(text)) bytes += piece.size();
      ASSERT_EQ(bytes, text.size()) << r.name << " " << unit;
    }
  }
}

std::string refusal(const Meta& meta) {
  try {
    find_pre_tokenizer(meta);
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    return error.what();
  }
  return "accepted";
}

TEST(FindPreTokenizer, RefusesWhatItDoesNotKnow) {
  const std::string missing = refusal(*MetaBuilder());
  EXPECT_THAT(missing, HasSubstr("test.gguf"));
  EXPECT_THAT(missing, HasSubstr("found no name"));
  EXPECT_THAT(missing, HasSubstr("--override-kv tokenizer.ggml.pre=str:NAME"));
  for (const PreTokenizerRule& r : pre_tokenizer_rules()) EXPECT_THAT(missing, HasSubstr(std::string(r.name)));
  EXPECT_THAT(refusal(*MetaBuilder().string("pre", "martian")), HasSubstr("found 'martian'"));
  EXPECT_THAT(refusal(*MetaBuilder().string("pre", "")), HasSubstr("found no name"));
  EXPECT_EQ(find_pre_tokenizer(*MetaBuilder().string("pre", "qwen2")).name, "qwen2");
}

TEST(FindPreTokenizer, NamesDiffer) {
  std::set<std::string_view> names;
  for (const PreTokenizerRule& r : pre_tokenizer_rules()) EXPECT_TRUE(names.insert(r.name).second) << r.name;
}

// A Hugging Face folder's definition is recognised under a name that means the same here.
TEST(FindPreTokenizer, AgreesWithTheReaderOfFolders) {
  int recognised = 0;
  for (const PreTokenizerRule& r : pre_tokenizer_rules()) {
    Json parts = Json::array();
    for (const std::string_view pattern : r.patterns)
      parts.push_back({{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}});
    parts.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    Json definition = {{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", parts}}}};
    if (r.nfc) definition["normalizer"] = {{"type", "NFC"}};
    const PreTokenizer found =
        recognise_pre_tokenizer(HfConfig(definition, "tokenizer.json"), r.whole_words, r.add_bos);
    EXPECT_EQ(found.normalizer, r.nfc ? "nfc" : "none") << r.name;
    if (found.pre.empty()) continue;
    ++recognised;
    EXPECT_EQ(rule(found.pre).patterns, r.patterns) << r.name << " and " << found.pre;
    EXPECT_EQ(rule(found.pre).nfc, r.nfc) << r.name << " and " << found.pre;
  }
  EXPECT_GE(recognised, 18);
}

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(normalize_nfc(text, storage));
}

TEST(NormalizeNfc, Composes) {
  EXPECT_EQ(nfc("Cafe\u0301 Caf\u00E9"), "Caf\u00E9 Caf\u00E9");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");    // Hangul
  EXPECT_EQ(nfc("\u212B"), "\u00C5");                // a singleton
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");          // excluded from composition
  EXPECT_EQ(nfc("a\u0301\u0323"), "\u1EA1\u0301");   // marks are put in order first
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");  // also where nothing composes
  EXPECT_EQ(nfc("\u0344"), "\u0308\u0301");
  EXPECT_EQ(nfc(""), "");
}

TEST(NormalizeNfc, LeavesWhatIsNormalInPlace) {
  const std::string text = "na\u00EFve caf\u00E9";
  std::string storage;
  EXPECT_EQ(normalize_nfc(text, storage).data(), text.data());
}

RC_GTEST_PROP(NormalizeNfc, IsStable, ()) {
  const std::string once = nfc(*text_of(U"aeq\u0301\u0323\u0307\u0308\u0327\u1100\u1161\u11A8\u212B\u0958\u00E9"));
  RC_ASSERT(nfc(once) == once);
}

TEST(NormalizeNfc, LongRunOfMarks) {
  std::string text = "a";
  for (int i = 0; i < 200'000; ++i) text += "\u0301";
  for (int i = 0; i < 200'000; ++i) text += "\u0323";
  EXPECT_EQ(nfc(text).substr(0, 3), "\u1EA1");
}

}  // namespace
}  // namespace consonant
