// SPDX-License-Identifier: Apache-2.0
#include "models/whisper_vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "formats/whisper/vocabulary_files.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;

const std::filesystem::path data = CONSONANT_TEST_DATA;

Meta folder_meta(const char* folder, int64_t vocabulary) {
  WhisperSizes sizes{384, 1536, vocabulary, 80, {4, 6, 1500}, {vocabulary == 51864 ? 4 : 6, 8, 448}};
  Meta meta;
  add_whisper_folder(data / folder, sizes, meta);
  return meta;
}

TEST(WhisperVocabulary, EnglishOnly) {
  const WhisperVocabulary v = whisper_vocabulary(folder_meta("whisper/tiny.en", 51864));
  EXPECT_FALSE(v.multilingual);
  EXPECT_THAT(v.languages, ElementsAre("en"));  // whatever lang_ids in its config.json says
  EXPECT_EQ(v.size, 51864);
  EXPECT_EQ(v.end, 50256);
  EXPECT_EQ(v.start, 50257);
  EXPECT_EQ(v.first_language, 50258);
  EXPECT_EQ(v.no_speech, 50361);
  EXPECT_EQ(v.first_timestamp, 50363);
  EXPECT_EQ(v.suppress.size(), 90u);
  EXPECT_THAT(v.suppress_at_begin, ElementsAre(220, 50256));
  EXPECT_EQ(v.text_positions, 448);
  EXPECT_EQ(v.audio_positions, 1500);
}

TEST(WhisperVocabulary, Multilingual) {
  const WhisperVocabulary v = whisper_vocabulary(folder_meta("whisper/base", 51865)), known = whisper_vocabulary(51865);
  EXPECT_TRUE(v.multilingual);
  EXPECT_EQ(v.languages, known.languages);
  EXPECT_EQ(v.languages.size(), 99u);
  EXPECT_EQ(v.languages[7], "ja");
  for (const auto field : {&WhisperVocabulary::end, &WhisperVocabulary::start, &WhisperVocabulary::first_language,
                           &WhisperVocabulary::translate, &WhisperVocabulary::transcribe,
                           &WhisperVocabulary::start_of_lm, &WhisperVocabulary::previous, &WhisperVocabulary::no_speech,
                           &WhisperVocabulary::no_timestamps, &WhisperVocabulary::first_timestamp})
    EXPECT_EQ(v.*field, known.*field);
  EXPECT_EQ(v.translate, 50358);
  EXPECT_EQ(v.previous, 50361);
  EXPECT_EQ(v.no_timestamps, 50363);
  EXPECT_EQ(whisper_vocabulary(51866).languages.back(), "yue");
  EXPECT_THAT(whisper_vocabulary(51864).languages, ElementsAre("en"));
  EXPECT_THROW(whisper_vocabulary(51867), Error);
}

TEST(WhisperVocabulary, OfACheckpointWithoutTexts) {
  const ModelFile file = open_model(data / "asr/tiny-random-whisper");
  const WhisperVocabulary v = whisper_vocabulary(*file.meta);
  EXPECT_EQ(v.size, 600);
  EXPECT_EQ(v.start, 501);
  EXPECT_EQ(v.end, 500);
  EXPECT_EQ(v.first_timestamp, -1);
  EXPECT_TRUE(v.languages.empty());
}

TEST(WhisperVocabulary, RefusesListsThatDoNotFit) {
  Meta meta = folder_meta("whisper/tiny.en", 51864);
  meta.replace("whisper.language_tokens", {MetaType::i32, true, MetaInts{50259}});
  EXPECT_THROW(whisper_vocabulary(meta), Error);
  meta.replace("whisper.language_tokens", {MetaType::i32, true, MetaInts{50258}});
  EXPECT_NO_THROW(whisper_vocabulary(meta));
  meta.replace("whisper.suppress_tokens", {MetaType::i32, true, MetaInts{51864}});
  EXPECT_THROW(whisper_vocabulary(meta), Error);
}

}  // namespace
}  // namespace consonant
