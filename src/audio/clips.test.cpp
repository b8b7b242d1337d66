// SPDX-License-Identifier: Apache-2.0
// Every recording of the manifest: as long as it says, and the same sound whatever it is stored as.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "audio/resample.hpp"
#include "audio/test_support.hpp"

namespace consonant {
namespace {

using ::testing::HasSubstr;

std::vector<float> resampled(const std::vector<float>& from, int64_t rate_in, int64_t rate_out) {
  std::vector<float> to;
  Resampler resampler(rate_in, rate_out);
  resampler.process(from, to);
  resampler.finish(to);
  return to;
}

double energy(const std::vector<float>& x) {
  double sum = 0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  return sum;
}

// Energy of the difference over that of the reference, in decibels, with `sound` moved by `lag` samples.
double difference_db(const std::vector<float>& sound, const std::vector<float>& reference, int lag = 0) {
  double sum = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const auto j = static_cast<int64_t>(i) + lag;
    const double x = j >= 0 && j < std::ssize(sound) ? static_cast<double>(sound[static_cast<size_t>(j)]) : 0.0;
    sum += (x - reference[i]) * (x - reference[i]);
  }
  return 10 * std::log10(std::max(sum, 1e-20) / energy(reference));
}

nlohmann::json manifest() {
  std::ifstream file(clip_path("manifest.json"));
  return nlohmann::json::parse(file);
}

TEST(Clips, AreAsLongAsTheManifestSays) {
  int read = 0;
  const nlohmann::json clips = manifest();
  for (const auto& clip : clips["clips"]) {
    const std::string name = clip["name"];
    if (clip["duration_s"].is_null() || clip.value("codec", "") == "aac" || name == "long_600s.flac") continue;
    SCOPED_TRACE(name);
    const auto audio = read_audio(clip_path(name));
    const int64_t length = audio->length();
    const auto samples = static_cast<int64_t>(all_of(*audio, 16384).size());
    // jfk.mp3 says how many of its samples are the encoder's, which the manifest counts.
    const double wanted = name == "jfk.mp3" ? 11.0 : clip["duration_s"].get<double>();
    const double tolerance = name == "fmt_48k_opus.ogg" ? 0.007 : 0.0006;
    EXPECT_NEAR(static_cast<double>(samples) / 16000, wanted, tolerance);
    EXPECT_EQ(audio->read(std::span<float>()), 0);
    // MPEG's length is an estimate.
    EXPECT_NEAR(static_cast<double>(length), static_cast<double>(samples), name == "fmt_44k1.mp3" ? 1200 : 0);
    EXPECT_EQ(audio->warnings().empty(), !name.starts_with("bad_"));
    ++read;
  }
  EXPECT_EQ(read, 43);
}

struct Format {
  const char* name;
  double worst_db;      // of what the format itself loses
  bool narrow = false;  // 8 kHz: compared with what is left of the reference at that rate
  int lag = 0;          // of an encoder that doesn't say how much it delays
};

class SameSound : public ::testing::TestWithParam<Format> {};

TEST_P(SameSound, AsTheFloatWav) {
  const Format format = GetParam();
  std::vector<float> reference = samples_of_clip("fmt_16k_f32.wav");
  ASSERT_GT(energy(reference), 1);
  if (format.narrow) reference = resampled(resampled(reference, 16000, 8000), 8000, 16000);
  EXPECT_LT(difference_db(samples_of_clip(format.name), reference, format.lag), format.worst_db);
}

INSTANTIATE_TEST_SUITE_P(
    Formats, SameSound,
    ::testing::Values(Format{"austen_0880.wav", -150}, Format{"fmt_16k.flac", -150}, Format{"fmt_16k_24bit.flac", -150},
                      Format{"fmt_16k_f64.wav", -150}, Format{"fmt_16k_s32.wav", -150}, Format{"fmt_16k_u8.wav", -20},
                      Format{"fmt_16k_vorbis.ogg", -16}, Format{"fmt_48k_opus.ogg", -12},
                      Format{"fmt_44k1.mp3", -20, false, 401}, Format{"fmt_44k1_stereo_s16.wav", -58},
                      Format{"fmt_48k_stereo_s24_extensible.wav", -58}, Format{"fmt_8k_mono_s16.wav", -65, true},
                      Format{"fmt_8k_alaw.wav", -36, true}, Format{"fmt_8k_mulaw.wav", -36, true},
                      Format{"fmt_odd_chunks.wav", -150}, Format{"fmt_streamed_sizes.wav", -150}),
    [](const auto& test) {
      std::string name = test.param.name;
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

TEST(Clips, Mp3IsTheSameSpeechAsWav) {
  EXPECT_LT(difference_db(samples_of_clip("jfk.mp3"), samples_of_clip("jfk.wav")), -15);
}

TEST(Clips, SamplesAreTheStoredNumbers) {
  const std::vector<float> samples = samples_of_clip("jfk.wav");
  const std::vector<std::byte> file = bytes_of(clip_path("jfk.wav"));
  ASSERT_EQ(file.size(), 44 + 2 * samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    int16_t stored;
    std::memcpy(&stored, file.data() + 44 + 2 * i, 2);
    ASSERT_EQ(samples[i], static_cast<float>(stored) / 32768.0f) << i;
  }
}

struct Broken {
  const char* name;
  const char* message;
};

class BrokenClip : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenClip, IsRefusedByName) {
  const std::string path = clip_path(GetParam().name);
  EXPECT_EQ(message_of(Exit::input, [&] { read_audio(path); }), path + ": " + GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Clips, BrokenClip,
    ::testing::Values(Broken{"bad_empty.wav", "is empty (0 bytes)"},
                      Broken{"bad_cut_header.wav", "ends within the 'fmt ' chunk, after 22 bytes"},
                      Broken{"bad_huge_channels.wav", "the header says 65535 channels; 1 to 256 can be read"},
                      Broken{"bad_no_data_chunk.wav", "has no 'data' chunk, so no samples"},
                      Broken{"bad_text.wav", "is text, not sound"},
                      Broken{"bad_zero_rate.wav", "the header says 0 samples a second; 1000 to 768000 can be read"}),
    [](const auto& test) { return std::string(test.param.name).substr(0, std::string(test.param.name).find('.')); });

TEST(Clips, HeaderWithoutSamplesIsNoSound) {
  const auto audio = read_audio(clip_path("bad_header_only.wav"));
  EXPECT_EQ(audio->length(), 0);
  EXPECT_THAT(all_of(*audio), ::testing::IsEmpty());
  EXPECT_THAT(audio->warnings(), ::testing::IsEmpty());
}

TEST(Clips, TruncatedIsReadToItsEndWithAWarning) {
  const auto audio = read_audio(clip_path("bad_truncated.wav"));
  const std::vector<float> samples = all_of(*audio), whole = samples_of_clip("austen_0880.wav");
  ASSERT_EQ(samples.size(), 30000U);
  EXPECT_TRUE(std::equal(samples.begin(), samples.end(), whole.begin()));
  EXPECT_THAT(
      audio->warnings(),
      ::testing::ElementsAre(HasSubstr("is cut off: it ends after 1.875 s of the 2.990 s that its header promises")));
}

TEST(Clips, WhatIsNoNumberCountsAsZeroWithOneWarning) {
  const auto audio = read_audio(clip_path("bad_nan_f32.wav"));
  const std::vector<float> samples = all_of(*audio);
  const std::vector<std::byte> file = bytes_of(clip_path("bad_nan_f32.wav"));
  int not_finite = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    float stored;
    std::memcpy(&stored, file.data() + 44 + 4 * i, 4);
    ASSERT_EQ(samples[i], std::isfinite(stored) ? stored : 0.0f) << i;
    not_finite += !std::isfinite(stored);
  }
  EXPECT_GT(not_finite, 1);
  EXPECT_THAT(audio->warnings(), ::testing::ElementsAre(HasSubstr("the first at 0.500 s: they count as 0")));
}

}  // namespace
}  // namespace consonant
