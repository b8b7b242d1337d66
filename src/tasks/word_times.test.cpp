// SPDX-License-Identifier: Apache-2.0
#include "tasks/word_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "decode/random.hpp"
#include "formats/model_file.hpp"
#include "formats/safetensors.hpp"
#include "tasks/fake_window_model.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;

const std::string data = CONSONANT_TEST_DATA "/asr/";

std::vector<std::string> texts_of(const std::vector<WordSpan>& words) {
  std::vector<std::string> texts;
  for (const WordSpan& w : words) texts.push_back(w.text);
  return texts;
}

TEST(Dtw, EntersTheRowsWhereTheReferenceDoes) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data)) {
    if (!entry.path().filename().string().starts_with("golden_")) continue;
    const SafetensorsFile file = SafetensorsFile::open(entry.path().string());
    if (file.find("alignment_matrix") == nullptr) continue;  // of translations
    const auto& matrix = file.tensor("alignment_matrix");
    const auto wanted = file.tensor("token_start_s").to_floats();
    const auto enters = enter_columns(matrix.to_floats(), matrix.sizes[0], matrix.sizes[1]);
    ASSERT_EQ(enters.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(double(enters[i]) * 0.02, double(wanted[i]), 1e-5) << entry.path() << ", token " << i;
    }
    ++files;
  }
  EXPECT_EQ(files, 8);
}

// Where no two ways tie; the rule for ties, which the goldens test, may leave the greatest sum.
TEST(Dtw, PathHasTheGreatestSum) {
  rc::check([] {
    const auto rows = *rc::gen::inRange<int64_t>(1, 5), columns = *rc::gen::inRange<int64_t>(1, 6);
    std::vector<float> m;
    for (int64_t i = 0; i < rows * columns; ++i) {
      m.push_back(float(*rc::gen::inRange(-8, 8)) / 4 + 0.0013f * std::sqrt(float(i)));
    }
    const std::function<double(int64_t, int64_t)> best = [&](int64_t i, int64_t j) -> double {
      const double here = double(m[size_t(i * columns + j)]);
      if (i == 0 && j == 0) return here;
      double before = -1e9;
      if (i > 0) before = std::max(before, best(i - 1, j));
      if (j > 0) before = std::max(before, best(i, j - 1));
      if (i > 0 && j > 0) before = std::max(before, best(i - 1, j - 1));
      return before + here;
    };
    const auto enters = enter_columns(m, rows, columns);
    // The sum along the path: a row is walked from where it is entered to where, or one before where, the next is.
    RC_ASSERT(enters[0] == 0);
    const std::function<double(int64_t, int64_t)> walk = [&](int64_t i, int64_t from) -> double {
      double along = 0;
      if (i == rows - 1) {
        for (int64_t j = from; j < columns; ++j) along += double(m[size_t(i * columns + j)]);
        return along;
      }
      const int64_t next = enters[size_t(i) + 1];
      for (int64_t j = from; j < next; ++j) along += double(m[size_t(i * columns + j)]);
      const double rest = walk(i + 1, next);
      const double straight = next == from ? -1e9 : along + rest;  // entered by a diagonal step
      return std::max(straight, along + double(m[size_t(i * columns + next)]) + rest);
    };
    const double sum = walk(0, 0);
    RC_ASSERT(std::is_sorted(enters.begin(), enters.end()));
    RC_ASSERT(std::fabs(sum - best(rows - 1, columns - 1)) < 1e-9);
  });
}

// The same by sorting, and over all heads at once.
TEST(Alignment, MatrixIsTheDefinitions) {
  rc::check([] {
    WindowModel::Alignment a;
    a.heads = *rc::gen::inRange<int64_t>(1, 4), a.positions = *rc::gen::inRange<int64_t>(1, 20);
    const auto tokens = *rc::gen::inRange<int64_t>(2, 8);
    const auto columns = *rc::gen::inRange<int64_t>(1, a.positions + 1);
    Random random(*rc::gen::arbitrary<uint64_t>());
    for (int64_t i = 0; i < a.heads * tokens * a.positions; ++i) a.weights.push_back(float(random.uniform()) + 0.01f);
    a.probability.assign(size_t(tokens), 0.5f);
    const auto first = *rc::gen::inRange<int64_t>(0, tokens);
    const int64_t rows = tokens - first;
    const auto got = alignment_matrix(a, first, rows, columns);
    std::vector<double> wanted(size_t(rows * columns), 0.0);
    for (int64_t h = 0; h < a.heads; ++h) {
      std::vector<std::vector<double>> w(static_cast<size_t>(tokens), std::vector<double>(size_t(columns), 0.0));
      for (int64_t t = 0; t < tokens; ++t) {
        double sum = 0;
        for (int64_t c = 0; c < columns; ++c) sum += double(a.weights[size_t((h * tokens + t) * a.positions + c)]);
        for (int64_t c = 0; c < columns; ++c) {
          w[size_t(t)][size_t(c)] = double(a.weights[size_t((h * tokens + t) * a.positions + c)]) / sum;
        }
      }
      for (int64_t c = 0; c < columns; ++c) {
        double mean = 0, square = 0;
        for (auto& row : w) mean += row[size_t(c)] / double(tokens);
        for (auto& row : w) square += std::pow(row[size_t(c)] - mean, 2) / double(tokens);
        for (auto& row : w) row[size_t(c)] = square > 1e-20 ? (row[size_t(c)] - mean) / std::sqrt(square) : 0;
      }
      for (int64_t r = 0; r < rows; ++r) {
        const auto& row = w[size_t(first + r)];
        for (int64_t c = 0; c < columns; ++c) {
          std::vector<double> seven;
          for (int64_t k = c - 3; k <= c + 3; ++k) {
            const int64_t at = k < 0 ? -k : k >= columns ? 2 * (columns - 1) - k : k;
            seven.push_back(columns > 3 ? row[size_t(at)] : row[size_t(c)]);
          }
          std::sort(seven.begin(), seven.end());
          wanted[size_t(r * columns + c)] += seven[3] / double(a.heads);
        }
      }
    }
    for (size_t i = 0; i < wanted.size(); ++i) RC_ASSERT(std::fabs(double(got[i]) - wanted[i]) < 1e-3);
  });
}

TEST(Alignment, RefusesWhatDoesNotFit) {
  WindowModel::Alignment a;
  a.heads = 1, a.positions = 4, a.weights.assign(8, 0.1f), a.probability.assign(2, 0.5f);
  EXPECT_NO_THROW(alignment_matrix(a, 0, 2, 4));
  EXPECT_THROW(alignment_matrix(a, 1, 2, 4), Error);
  a.weights.pop_back();
  EXPECT_THROW(alignment_matrix(a, 0, 2, 4), Error);
}

std::vector<std::string> words(const std::string& text, const std::string& language = "en",
                               std::vector<size_t> breaks = {}) {
  const std::vector<int32_t> bytes = [&] {
    std::vector<int32_t> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }();
  const auto spans = split_words(bytes, fake_tokenizer(), language, breaks);
  size_t at = 0;
  for (const WordSpan& w : spans) {
    EXPECT_EQ(w.first, at);
    EXPECT_GT(w.last, w.first);
    at = w.last;
  }
  EXPECT_EQ(at, bytes.size());
  return texts_of(spans);
}

TEST(Words, EndAtSpacesAndTakeTheirPunctuation) {
  EXPECT_THAT(words(" And so, my"), ElementsAre(" And", " so,", " my"));
  EXPECT_THAT(words("No space"), ElementsAre("No", " space"));
  EXPECT_THAT(words(" \"Hi,\" he (we) said..."), ElementsAre(" \"Hi,\"", " he", " (we)", " said..."));
  EXPECT_THAT(words(" it's 100% ¿qué?"), ElementsAre(" it's", " 100%", " ¿qué?"));
  EXPECT_THAT(words(" end "), ElementsAre(" end"));
  EXPECT_THAT(words(""), ElementsAre());
}

TEST(Words, AreCharactersWhereNoSpacesAreWritten) {
  EXPECT_THAT(words("今日は、世界。", "ja"), ElementsAre("今", "日", "は、", "世", "界。"));
  EXPECT_THAT(words("「今」", "ja"), ElementsAre("「今」"));
  EXPECT_THAT(words("今日", "ko"), ElementsAre("今日"));
}

TEST(Words, DoNotCrossSegments) {
  EXPECT_THAT(words("ab.cd", "en", {0, 3}), ElementsAre("ab.", "cd"));
  EXPECT_THAT(words(" a,b", "en", {0, 2}), ElementsAre(" a", ",b"));
  // A character that is cut off by the end of its segment.
  EXPECT_THAT(words(" a\xe4\xbb", "en", {0}), ElementsAre(" a\xef\xbf\xbd"));
}

// Words and the tokens that make them, as the reference cut the texts of real models.
class RealWords : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(RealWords, AreTheReferences) {
  const auto& [model, goldens] = GetParam();
  const auto path = std::filesystem::path(CONSONANT_MODELS) / model;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << model << " is not in " << CONSONANT_MODELS;
  const ModelFile file = open_model(path.string());
  const Tokenizer tokenizer = Tokenizer::load(*file.meta);
  std::ifstream stream(data + goldens);
  const auto expected = nlohmann::json::parse(stream);
  const std::string name = std::string(goldens).substr(9, std::string(goldens).size() - 14);
  size_t compared = 0;
  for (const auto& [clip, e] : expected["clips"].items()) {
    if (!e.contains("words") || clip.starts_with("ja_")) continue;
    const int32_t end = name == "base" ? 50257 : 50256;
    std::vector<int32_t> text;
    for (const int32_t id : e["ids_timestamps"].get<std::vector<int32_t>>()) {
      if (id < end) text.push_back(id);
    }
    const auto starts = SafetensorsFile::open(data + "golden_" + name + "_" + clip + ".safetensors")
                            .tensor("token_start_s")
                            .to_floats();
    const auto spans = split_words(text, tokenizer, e.value("language_used", "en"), {});
    ASSERT_EQ(spans.size(), e["words"].size()) << clip;
    for (size_t i = 0; i < spans.size(); ++i) {
      EXPECT_EQ(spans[i].text, e["words"][i]["word"]);
      EXPECT_NEAR(double(starts[spans[i].first]), e["words"][i]["start"].get<double>(), 1e-6);
      EXPECT_NEAR(double(starts[spans[i].last]), e["words"][i]["end"].get<double>(), 1e-6);
      ++compared;
    }
  }
  EXPECT_GT(compared, 40u);
}

INSTANTIATE_TEST_SUITE_P(All, RealWords,
                         testing::Values(std::pair{"whisper-tiny.en", "expected_tiny.en.json"},
                                         std::pair{"whisper-base", "expected_base.json"}),
                         [](const auto& info) { return info.index == 0 ? "tiny_en" : "base"; });

}  // namespace
}  // namespace consonant
