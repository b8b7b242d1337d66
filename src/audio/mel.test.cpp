// SPDX-License-Identifier: Apache-2.0
#include "audio/mel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numbers>

#include "audio/test_support.hpp"

namespace consonant {
namespace {

// Facts of tables that Hugging Face's transformers 5 makes (audio_utils.mel_filter_bank): the greatest value and where,
// the sum, and of three bands (the first, that at a third, the last) the sum and the sum weighted with the bins'
// numbers.
struct Table {
  const char* name;
  int64_t mels, n_fft;
  double rate, low, high;
  MelScale scale;
  MelNorm norm;
  double greatest;
  size_t greatest_band, greatest_bin;
  double sum;
  double bands[3][2];
};

class MelTable : public ::testing::TestWithParam<Table> {};

TEST_P(MelTable, IsTheReferences) {
  const Table t = GetParam();
  const std::vector<float> filters = mel_filters(t.mels, t.n_fft, t.rate, t.low, t.high, t.scale, t.norm);
  const auto bins = static_cast<size_t>(t.n_fft / 2 + 1);
  ASSERT_EQ(filters.size(), static_cast<size_t>(t.mels) * bins);
  const size_t greatest = static_cast<size_t>(std::max_element(filters.begin(), filters.end()) - filters.begin());
  EXPECT_EQ(greatest, t.greatest_band * bins + t.greatest_bin);
  EXPECT_NEAR(filters[greatest], t.greatest, 1e-7 * t.greatest);
  double sum = 0;
  for (const float x : filters) sum += x;
  EXPECT_NEAR(sum, t.sum, 1e-7 * t.sum);
  const size_t bands[3] = {0, static_cast<size_t>(t.mels / 3), static_cast<size_t>(t.mels - 1)};
  for (size_t b = 0; b < 3; ++b) {
    double total = 0, weighted = 0;
    for (size_t k = 0; k < bins; ++k) {
      total += filters[bands[b] * bins + k];
      weighted += filters[bands[b] * bins + k] * static_cast<double>(k);
    }
    EXPECT_NEAR(total, t.bands[b][0], 1e-6 * t.bands[b][0]);
    EXPECT_NEAR(weighted, t.bands[b][1], 1e-6 * t.bands[b][1]);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tables, MelTable,
    ::testing::Values(Table{"whisper_80",
                            80,
                            400,
                            16000,
                            0,
                            8000,
                            MelScale::slaney,
                            MelNorm::slaney,
                            0.0258806845,
                            13,
                            13,
                            1.9990241,
                            {{0.024862594, 0.024862594}, {0.0254328234, 0.639139191}, {0.0249253397, 4.79933792}}},
                      Table{"whisper_128",
                            128,
                            400,
                            16000,
                            0,
                            8000,
                            MelScale::slaney,
                            MelNorm::slaney,
                            0.0416817493,
                            11,
                            7,
                            3.19098553,
                            {{0.0123739863, 0.0123739863}, {0.0316114589, 0.790286473}, {0.0249360439, 4.86864244}}},
                      Table{"fft_512",
                            128,
                            512,
                            16000,
                            0,
                            8000,
                            MelScale::slaney,
                            MelNorm::slaney,
                            0.0423660777,
                            3,
                            3,
                            4.09048764,
                            {{0.028377543, 0.028377543}, {0.0316114589, 1.01156669}, {0.031943687, 7.98417763}}},
                      Table{"htk",
                            40,
                            512,
                            16000,
                            20,
                            7600,
                            MelScale::htk,
                            MelNorm::none,
                            0.998428907,
                            10,
                            22,
                            234.228364,
                            {{1.58651783, 3.29023446}, {3.14541141, 96.6460846}, {14.9326825, 3406.44854}}},
                      Table{"htk_area",
                            100,
                            1024,
                            24000,
                            0,
                            12000,
                            MelScale::htk,
                            MelNorm::slaney,
                            0.0413120277,
                            0,
                            1,
                            4.26353787,
                            {{0.0413120277, 0.0413120277}, {0.0421034939, 2.08032268}, {0.0426418794, 21.1849377}}}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Mel, RefusesNumbersThatMakeNoSense) {
  EXPECT_EQ(message_of(Exit::input, [] { mel_filters(0, 400, 16000, 0, 8000); }), "0 mel bands; 1 to 1024 expected");
  EXPECT_EQ(message_of(Exit::input, [] { mel_filters(80, 401, 16000, 0, 8000); }),
            "a spectrum of 401 samples; an even number from 2 to 65536 expected");
  EXPECT_EQ(message_of(Exit::input, [] { mel_filters(80, 400, 16000, 0, 8001); }),
            "mel bands from 0 to 8001 Hz at 16000 samples a second; they must lie between 0 and half of that");
  EXPECT_NE(message_of(Exit::input, [] { mel_filters(80, 400, NAN, 0, 8000); }), "no error");
  EXPECT_EQ(message_of(Exit::input, [] { hann_window(1); }), "a window of 1 samples; 2 or more expected");
}

TEST(Hann, PeriodicAndSymmetric) {
  const std::vector<float> periodic = hann_window(400), symmetric = hann_window(5, false);
  EXPECT_EQ(periodic[0], 0.0f);
  EXPECT_EQ(periodic[200], 1.0f);
  EXPECT_FLOAT_EQ(periodic[100], 0.5f);
  EXPECT_EQ(periodic[1], periodic[399]);
  EXPECT_EQ(symmetric, (std::vector<float>{0, 0.5f, 1, 0.5f, 0}));
}

struct Golden {
  int64_t frames = 0;
  std::vector<float> values;  // [80, frames]
};

Golden golden_log_mel(const std::string& path) {
  const std::vector<std::byte> file = bytes_of(path);
  uint64_t header_bytes;
  std::memcpy(&header_bytes, file.data(), 8);
  const auto header = nlohmann::json::parse(std::string(reinterpret_cast<const char*>(file.data()) + 8, header_bytes));
  const nlohmann::json& tensor = header.at("log_mel");
  Golden golden;
  golden.frames = tensor.at("shape").at(1);
  golden.values.resize(static_cast<size_t>(80 * golden.frames));
  const size_t start = 8 + header_bytes + tensor.at("data_offsets").at(0).get<size_t>();
  std::memcpy(golden.values.data(), file.data() + start, golden.values.size() * 4);
  return golden;
}

// The tables, the reading of the file and the notes' formula together: log-mel as transformers has it for this clip.
TEST(Mel, LogMelOfAClipIsTransformers) {
  const Golden golden = golden_log_mel(clip_path("mel_en_quick_brown_fox.safetensors"));
  ASSERT_GT(golden.frames, 280);
  std::vector<float> samples = samples_of_clip("en_quick_brown_fox.wav");
  const std::vector<float> filters = mel_filters(80, 400, 16000, 0, 8000), window = hann_window(400);
  std::vector<double> cosines(400), sines(400);
  for (size_t i = 0; i < 400; ++i) {
    cosines[i] = std::cos(2 * std::numbers::pi * static_cast<double>(i) / 400);
    sines[i] = std::sin(2 * std::numbers::pi * static_cast<double>(i) / 400);
  }
  const auto frames = static_cast<size_t>(golden.frames);
  std::vector<double> log_mel(80 * frames);
  for (size_t t = 0; t < frames; ++t) {
    double power[201];
    for (size_t k = 0; k <= 200; ++k) {
      double re = 0, im = 0;
      for (size_t i = 0; i < 400; ++i) {
        const auto at = static_cast<size_t>(std::abs(static_cast<int64_t>(t * 160 + i) - 200));
        const double x = at < samples.size() ? static_cast<double>(samples[at]) * window[i] : 0.0;
        re += x * cosines[k * i % 400];
        im -= x * sines[k * i % 400];
      }
      power[k] = re * re + im * im;
    }
    for (size_t m = 0; m < 80; ++m) {
      double energy = 0;
      for (size_t k = 0; k <= 200; ++k) energy += filters[m * 201 + k] * power[k];
      log_mel[m * frames + t] = std::log10(std::max(1e-10, energy));
    }
  }
  const double floor = *std::max_element(log_mel.begin(), log_mel.end()) - 8;
  double worst = 0;
  for (size_t i = 0; i < log_mel.size(); ++i)
    worst = std::max(worst, std::fabs((std::max(log_mel[i], floor) + 4) / 4 - golden.values[i]));
  EXPECT_LT(worst, 2e-5);
}

}  // namespace
}  // namespace consonant
