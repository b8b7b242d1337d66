// SPDX-License-Identifier: Apache-2.0
#include "formats/whisper/tokens.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.hpp"
#include "formats/mapped_file.hpp"
#include "formats/whisper/vocabulary_files.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path data = CONSONANT_TEST_DATA "/whisper";

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    return error.what();
  }
  return "accepted";
}

TEST(WhisperTokens, ControlsFollowFromTheSize) {
  const WhisperControls en = whisper_controls(51864, "m"), base = whisper_controls(51865, "m"),
                        large = whisper_controls(51866, "m");
  EXPECT_EQ(en.end, 50256);
  EXPECT_EQ(en.start(), 50257);
  EXPECT_EQ(en.translate(), 50357);
  EXPECT_EQ(en.no_speech(), 50361);
  EXPECT_EQ(en.first_timestamp(), 50363);
  EXPECT_EQ(base.end, 50257);
  EXPECT_EQ(base.first_timestamp(), 50364);
  EXPECT_EQ(large.transcribe(), 50360);
  EXPECT_EQ(large.first_timestamp(), 50365);
  for (const auto& [controls, size] : {std::pair(en, 51864), std::pair(base, 51865), std::pair(large, 51866)})
    EXPECT_EQ(whisper_control_text(controls, size - 1), "<|30.00|>");
  EXPECT_EQ(whisper_control_text(large, 50358), "<|yue|>");
  EXPECT_EQ(whisper_control_text(base, 50259), "<|en|>");
  EXPECT_EQ(whisper_control_text(base, 50364 + 51), "<|1.02|>");
  for (const int64_t size : {0, 51863, 51867})
    EXPECT_THAT(refusal([&] { whisper_controls(size, "m"); }), HasSubstr("51865"));
}

TEST(WhisperTokens, ControlsAreFoundByTheirTexts) {
  std::vector<std::string_view> texts = {"a",
                                         "<|endoftext|>",
                                         "<|startoftranscript|>",
                                         "<|en|>",
                                         "<|zh|>",
                                         "<|translate|>",
                                         "<|transcribe|>",
                                         "",
                                         "<|startofprev|>",
                                         "<|nocaptions|>",
                                         "<|notimestamps|>",
                                         "<|0.00|>",
                                         ""};
  const WhisperControls found = whisper_controls(texts, "m");
  EXPECT_EQ(found.end, 1);
  EXPECT_EQ(found.languages, 2);
  EXPECT_EQ(found.first_timestamp(), 11);
  const auto with = [&](size_t id, std::string_view text) {
    auto changed = texts;
    changed[id] = text;
    return refusal([&] { whisper_controls(changed, "m"); });
  };
  EXPECT_THAT(with(1, "x"), HasSubstr("no \"<|endoftext|>\""));
  EXPECT_THAT(with(2, "<|start|>"),
              HasSubstr("token 2 of 13 is \"<|start|>\", where Whisper's vocabulary has \"<|startof"));
  EXPECT_THAT(with(12, "<|0.04|>"), HasSubstr("has \"<|0.02|>\""));
  EXPECT_THAT(with(3, "word"), HasSubstr("token 3"));
  texts.resize(8);
  EXPECT_THAT(refusal([&] { whisper_controls(texts, "m"); }), HasSubstr("ends at id 7"));
}

// A vocabulary with its control tokens at `end`, and without the texts of the timestamps, as Hugging Face has it.
std::vector<std::string> vocabulary(int64_t size, const WhisperControls& controls) {
  std::vector<std::string> texts(static_cast<size_t>(size));
  for (int64_t id = controls.end; id < controls.first_timestamp(); ++id)
    texts[static_cast<size_t>(id)] = whisper_control_text(controls, id);
  return texts;
}

TEST(WhisperTokens, ModelsHaveTheVocabularyOfTheirSize) {
  const auto found = [](int64_t size, int64_t of) {
    const auto texts = vocabulary(size, whisper_controls(of, "m"));
    return whisper_controls(std::vector<std::string_view>(texts.begin(), texts.end()), "m").end;
  };
  EXPECT_EQ(found(51864, 51864), 50256);
  EXPECT_EQ(found(51865, 51865), 50257);
  EXPECT_EQ(found(51866, 51866), 50257);
  for (const int64_t size : {51864, 51865, 51866})
    for (const int64_t of : {51864, 51865, 51866})
      if (size != of) {
        EXPECT_THAT(refusal([&] { found(size, of); }), HasSubstr("the vocabulary is another model's")) << size << of;
      }
}

TEST(WhisperTokens, MergesByRank) {
  const std::vector<std::string> texts = {"a", "b", "c", "bc", "ab", "abc", "é", "éa"};
  const RankedMerges ranks(texts, texts.size());
  EXPECT_THAT(ranks.split("abc", 5), ElementsAre("a", "bc"));  // the lower rank first
  EXPECT_THAT(ranks.split("abc", 6), ElementsAre("abc"));
  EXPECT_THAT(ranks.split("abab", 8), ElementsAre("ab", "ab"));
  EXPECT_THAT(ranks.split("éa", 8), ElementsAre("éa"));
  EXPECT_THAT(ranks.split("xa", 8), ElementsAre("x", "a"));
  EXPECT_TRUE(ranks.split("", 8).empty());
}

class RealVocabulary : public testing::TestWithParam<std::pair<const char*, int64_t>> {
 protected:
  std::filesystem::path folder() const { return data / GetParam().first; }
  WhisperTokens tokens() const { return *read_whisper_tokens(folder(), GetParam().second); }
  WhisperControls controls() const { return whisper_controls(GetParam().second, "m"); }
};

// Ids give the merges that the published tokenizer lists.
TEST_P(RealVocabulary, RanksTellTheMerges) {
  Meta meta;
  add_whisper_tokenizer(tokens(), controls(), meta);
  std::ifstream file(folder() / "merges.txt");
  std::string line;
  std::getline(file, line);
  const MetaStrings& merges = meta.strings("tokenizer.ggml.merges");
  size_t i = 0;
  for (; std::getline(file, line); ++i) {
    ASSERT_LT(i, merges.size());
    ASSERT_EQ(merges[i], line) << i;
  }
  EXPECT_EQ(i, merges.size());
  EXPECT_EQ(i, 50000u);
}

TEST_P(RealVocabulary, SuppressedTokensAreThoseThatAreStated) {
  const auto path = folder() / "config.json";
  const Json config = parse_json(MappedFile::open(path)->text(), path.string());
  const WhisperTokens held = tokens();
  EXPECT_EQ(whisper_suppressed(held.texts, controls()), config.at("suppress_ids").get<std::vector<int64_t>>());
  EXPECT_EQ(whisper_suppressed_at_begin(held.texts, controls()),
            config.at("suppress_ids_begin").get<std::vector<int64_t>>());
}

TEST_P(RealVocabulary, AlignmentHeadsAreThoseThatAreStated) {
  const auto path = folder() / "config.json";
  const Json config = parse_json(MappedFile::open(path)->text(), path.string());
  MetaInts stated;
  for (const Json& pair : config.at("alignment_heads"))
    for (const Json& x : pair) stated.push_back(x.get<int64_t>());
  const int64_t layers = GetParam().second == 51864 ? 4 : 6;
  EXPECT_EQ(published_alignment_heads({0, 0, GetParam().second, 0, {}, {layers, layers == 4 ? 6 : 8, 0}}), stated);
}

INSTANTIATE_TEST_SUITE_P(WhisperTokens, RealVocabulary,
                         testing::Values(std::pair("tiny.en", int64_t{51864}), std::pair("base", int64_t{51865})),
                         [](const auto& i) { return std::string(i.param.second == 51864 ? "tiny_en" : "base"); });

}  // namespace
}  // namespace consonant
