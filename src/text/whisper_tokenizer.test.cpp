// SPDX-License-Identifier: Apache-2.0
// Whisper's vocabularies against the ids that Hugging Face's tokenizers give.
#include <gtest/gtest.h>

#include "formats/json.hpp"
#include "formats/mapped_file.hpp"
#include "formats/model_file.hpp"
#include "formats/whisper/vocabulary_files.hpp"
#include "text/tokenizer.hpp"

namespace consonant {
namespace {

const std::filesystem::path data = CONSONANT_TEST_DATA "/whisper", models = CONSONANT_MODELS;

Json vectors() {
  const auto path = data / "tokenizer_vectors.json";
  return parse_json(MappedFile::open(path)->text(), path.string());
}

void expect_vectors(const Tokenizer& tokenizer, const Json& cases) {
  for (const Json& c : cases) {
    const auto text = c.at("text").get<std::string>();
    const auto ids = c.at("ids").get<std::vector<int32_t>>();
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

// The merges are told from the ids here, as they are for files of whisper.cpp.
TEST(WhisperTokenizer, OfAVocabulary) {
  const Json cases = vectors();
  for (const auto& [model, size] : {std::pair("tiny.en", int64_t{51864}), std::pair("base", int64_t{51865})}) {
    Meta meta;
    meta.source = model;
    add_whisper_tokenizer(*read_whisper_tokens(data / model, size), whisper_controls(size, model), meta);
    const Tokenizer tokenizer = Tokenizer::load(meta);
    ASSERT_GT(cases.at(model).size(), 10u);
    expect_vectors(tokenizer, cases.at(model));
    EXPECT_EQ(tokenizer.eos(), size == 51864 ? 50256 : 50257);
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{tokenizer.bos(), 0}, {.skip_special = true}), "!");
  }
}

TEST(WhisperTokenizer, OfTheRealModel) {
  if (!std::filesystem::exists(models / "whisper-tiny.en" / "model.bin"))
    GTEST_SKIP() << "no whisper-tiny.en: tools/fetch_model.py whisper-tiny.en";
  const ModelFile file = open_model(models / "whisper-tiny.en");
  expect_vectors(Tokenizer::load(*file.meta), vectors().at("tiny.en"));
}

}  // namespace
}  // namespace consonant
