// SPDX-License-Identifier: Apache-2.0
// Qwen3-TTS's codec and speaker encoder against the values that the reference recorded at every stage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.hpp"
#include "formats/convert.hpp"
#include "tests/tts_codec_golden.hpp"

namespace consonant {
namespace {

using testing::HasSubstr;

const Golden& golden() {
  static const Golden file(tts_data + "golden/codec.safetensors");
  return file;
}

std::span<const float> first(const std::vector<float>& x, size_t n) { return std::span(x).first(n); }

// Whatever the device calls the node that ends in a stage: the last of these that it has.
const TapRows& tap_of(const std::vector<TapRows>& taps, std::initializer_list<const char*> names) {
  for (const char* name : names)
    for (const TapRows& tap : taps)
      if (tap.name == name) return tap;
  std::string all;
  for (const TapRows& tap : taps) all += "\n" + tap.name;
  throw std::runtime_error(std::string("no tap ") + *names.begin() + " among" + all);
}

void expect_stage(const std::vector<float>& want, std::span<const float> got, size_t columns, const std::string& what) {
  ASSERT_EQ(want.size(), got.size()) << what;
  const Distance d = distance_of(want, got, columns);
  EXPECT_LE(d.max_abs, 1e-4) << what;
  EXPECT_GE(d.worst_cosine, 0.99999) << what;
}

// The recording was made in float32, and these random weights make its rounding errors large: kernels that add up in
// float64 are 0.95e-4 from it at its worst sample, 1.07e-4 with chunks. So others may be a little further away there.
void expect_waveform(std::span<const float> want, std::span<const float> got, double most = 1.5e-4) {
  ASSERT_EQ(want.size(), got.size());
  const Distance d = distance_of(want, got, want.size());
  EXPECT_LE(d.max_abs, most);
  EXPECT_LE(d.rms, 1.5e-5);
  EXPECT_GE(d.worst_cosine, 0.99999);
}

struct Case {
  std::string device, path;
  size_t frames;  // that are decoded: an emulated card is slow
};

class CodecDecoding : public testing::TestWithParam<Case> {};

TEST_P(CodecDecoding, AgreesWithTheReferenceAtEveryStage) {
  const size_t frames = GetParam().frames;
  LoadedDecoder codec(GetParam().path, exactly_on(GetParam().device));
  codec.runner.watch({"dec/*"});
  const std::vector<int32_t> codes = golden().ids("dec.codes");
  const int stream = codec.runner.open();
  const auto wav = codec.runner.decode(stream, std::span(codes).first(frames * 16));
  const std::vector<TapRows> taps = codec.runner.take_taps();
  // Name, rows of a frame, channels, nodes.
  const auto stage = [&](const std::string& name, size_t rows, size_t n, std::initializer_list<const char*> nodes) {
    const TapRows& tap = tap_of(taps, nodes);
    std::vector<float> got = tap.rows;
    std::vector<float> want = golden().floats(name);
    if (name == "dec.transformer")
      want.resize(frames * rows * n);
    else
      want = transposed(want, n, std::min(frames * rows, want.size() / n));
    got.resize(std::min(got.size(), want.size()));
    expect_stage(want, got, n, name);
  };
  stage("dec.rvq", 1, 32, {"dec/rvq/add.15"});
  stage("dec.pre_conv", 1, 48, {"dec/conv(codec.dec.pre_conv_w)"});
  stage("dec.transformer", 1, 48, {"dec/xfmr/add(codec.dec.xfmr.out_proj_b)"});
  stage("dec.upsample_0", 2, 48, {"dec/up.0/add"});
  stage("dec.upsample_1", 4, 48, {"dec/up.1/add"});
  stage("dec.in_conv", 4, 64, {"dec/conv(codec.dec.in_conv_w)"});
  stage("dec.block_0_first_10_frames", 32, 32, {"dec/blk.0/res.2/add"});
  const std::vector<float> want = golden().floats("dec.wav");
  ASSERT_EQ(wav.size(), frames * 1920);
  expect_waveform(first(want, wav.size()), wav, GetParam().device == "reference" ? 1e-4 : 1.5e-4);
}

INSTANTIATE_TEST_SUITE_P(Devices, CodecDecoding,
                         testing::Values(Case{"cpu", codec_gguf, 60}, Case{"cpu", codec_folder, 60},
                                         Case{"reference", codec_gguf, 60}, Case{"emu32", codec_gguf, 12},
                                         Case{"emu64", codec_gguf, 12}));

std::vector<float> decoded(const std::vector<int32_t>& codes, ChunkRule rule, const std::vector<size_t>& cuts = {}) {
  LoadedDecoder codec(codec_gguf, exactly_on("cpu"), rule);
  const int stream = codec.runner.open();
  std::vector<float> wav;
  std::span<const int32_t> left = codes;
  for (size_t i = 0; !left.empty(); ++i) {
    const size_t n = cuts.empty() ? left.size() : std::min(left.size(), cuts[i % cuts.size()] * 16);
    const auto more = codec.runner.decode(stream, left.first(n));
    wav.insert(wav.end(), more.begin(), more.end());
    left = left.subspan(n);
  }
  return wav;
}

TEST(CodecChunks, FollowTheReferencesRule) {
  const std::vector<float> want = golden().floats("dec.wav_chunk20_context10"),
                           got = decoded(golden().ids("dec.codes"), {20, 10});
  ASSERT_EQ(got.size(), want.size());
  expect_waveform(want, got);
}

TEST(CodecChunks, BeginAnewAfter300Frames) {
  const std::vector<int32_t> codes = golden().ids("dec_long.codes");
  const auto around = [](const std::vector<float>& wav) {
    return std::vector<float>(wav.begin() + 298 * 1920, wav.begin() + 304 * 1920);
  };
  const std::vector<float> ruled = around(decoded(codes, {})), whole = around(decoded(codes, {1000, 25}));
  const auto want = golden().floats("dec_long.wav_frames_298_303"),
             at_once = golden().floats("dec_long.wav_at_once_frames_298_303");
  expect_waveform(want, ruled);
  expect_waveform(at_once, whole);
}

// How codes come doesn't change a sample, not even across the border of a chunk.
TEST(CodecChunks, AStreamIsTheSameHoweverItIsCut) {
  const std::vector<int32_t> codes = golden().ids("dec.codes");
  const std::vector<float> want = decoded(codes, {20, 10});
  for (const std::vector<size_t>& cuts : std::vector<std::vector<size_t>>{{1}, {3, 8}, {17, 2, 40}})
    EXPECT_EQ(decoded(codes, {20, 10}, cuts), want);
}

TEST(CodecStreams, DontHearEachOther) {
  const std::vector<int32_t> codes = golden().ids("dec.codes");
  LoadedDecoder codec(codec_gguf, exactly_on("cpu", 1, 2));
  const int a = codec.runner.open(), b = codec.runner.open();
  std::vector<float> one, other;
  for (size_t frame = 0; frame < 10; ++frame) {
    const auto part = codec.runner.decode(a, std::span(codes).subspan(frame * 16, 16));
    one.insert(one.end(), part.begin(), part.end());
    const auto later = codec.runner.decode(b, std::span(codes).subspan((frame + 10) * 16, 16));
    other.insert(other.end(), later.begin(), later.end());
  }
  expect_waveform(first(golden().floats("dec.wav"), one.size()), one);
  codec.runner.close(a);
  const int again = codec.runner.open();  // where the first one was
  EXPECT_EQ(codec.runner.decode(again, std::span(codes).subspan(160, 160)), other);
}

TEST(CodecStreams, RefuseWhatIsNoCode) {
  LoadedDecoder codec(codec_gguf, exactly_on("cpu"));
  const int stream = codec.runner.open();
  std::vector<int32_t> codes(16, 3);
  EXPECT_THROW(codec.runner.decode(stream, std::span(codes).first(15)), Error);
  codes[5] = 64;
  try {
    codec.runner.decode(stream, codes);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    EXPECT_THAT(error.what(), HasSubstr("code 64: a codebook has 64 entries"));
  }
}

class CodecEncoding : public testing::TestWithParam<Case> {};

TEST_P(CodecEncoding, AgreesWithTheReferenceAtEveryStage) {
  LoadedEncoder codec(GetParam().path, exactly_on(GetParam().device));
  codec.runner.watch({"enc/*"});
  const std::vector<float> wav = golden().floats("enc.wav");
  if (GetParam().frames == 26) {
    EXPECT_EQ(codec.runner.encode(wav), golden().ids("enc.codes"));
    const std::vector<TapRows> taps = codec.runner.take_taps();
    expect_stage(transposed(golden().floats("enc.seanet"), 64, 52),
                 tap_of(taps, {"enc/seanet/conv(codec.enc.seanet.final_w)"}).rows, 64, "enc.seanet");
    expect_stage(golden().floats("enc.transformer"), tap_of(taps, {"enc/xfmr/blk.2/add.2"}).rows, 64,
                 "enc.transformer");
    expect_stage(transposed(golden().floats("enc.downsample"), 64, 26), tap_of(taps, {"enc/conv(codec.enc.ds_w)"}).rows,
                 64, "enc.downsample");
  }
  EXPECT_EQ(codec.runner.encode(first(wav, 8 * 1920)), golden().ids("enc.codes_8_frames"));
}

INSTANTIATE_TEST_SUITE_P(Devices, CodecEncoding,
                         testing::Values(Case{"cpu", codec_gguf, 26}, Case{"cpu", codec_folder, 26},
                                         Case{"reference", codec_gguf, 26}, Case{"emu32", codec_gguf, 8},
                                         Case{"emu64", codec_gguf, 8}));

class SpeakerEncoding : public testing::TestWithParam<std::string> {};

TEST_P(SpeakerEncoding, AgreesWithTheReference) {
  const Golden base(tts_data + "golden/base.safetensors");
  LoadedSpeaker speaker(talker_gguf, exactly_on(GetParam()));
  const std::vector<float> wav = golden().floats("enc.wav"), mel = base.floats("speaker.mel"),
                           got = speaker.runner.features(wav);
  ASSERT_EQ(got.size(), mel.size());
  EXPECT_LE(distance_of(mel, got, 128).max_abs, 1e-3);
  const std::vector<float> want = base.floats("speaker.embedding"), voice = speaker.runner.embed(wav);
  ASSERT_EQ(voice.size(), want.size());
  EXPECT_GE(distance_of(want, voice, want.size()).worst_cosine, 0.99999);
  EXPECT_LE(distance_of(want, voice, want.size()).max_abs, 1e-4);
}

INSTANTIATE_TEST_SUITE_P(Devices, SpeakerEncoding, testing::Values("cpu", "reference", "emu32", "emu64"));

TEST(SpeakerEncoding, RefusesWhatIsTooShort) {
  LoadedSpeaker speaker(talker_gguf, exactly_on("cpu"));
  const std::vector<float> wav(1000);
  try {
    speaker.runner.embed(wav);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    EXPECT_THAT(error.what(), HasSubstr("a voice of 1000 samples"));
  }
}

// All tensors of the folder are those of the file, by name, shape and number.
TEST(CodecFiles, AFolderIsTheSameAsGguf) {
  const ModelFile folder = open_model(codec_folder), gguf = open_model(codec_gguf);
  for (const StoredTensor& want : gguf.tensors) {
    const StoredTensor* got = folder.find(want.name);
    if (!got) {
      EXPECT_TRUE(want.name.starts_with("codec.enc.rvq.") && want.name.ends_with("out_w")) << want.name;
      continue;
    }
    EXPECT_EQ(got->sizes, want.sizes) << want.name;
    EXPECT_EQ(got->load().to_floats(), want.load().to_floats()) << want.name;
  }
  for (const auto& [key, value] : gguf.meta->entries())
    if (key.starts_with("qwen3tts_codec.dec.") && folder.meta->has(key)) {
      EXPECT_EQ(folder.meta->find(key)->value.index(), value.value.index()) << key;
    }
}

std::vector<float> ten_frames(const std::string& path) {
  LoadedDecoder codec(path, exactly_on("cpu"));
  const std::vector<int32_t> codes = golden().ids("dec.codes");
  return codec.runner.decode(codec.runner.open(), std::span(codes).first(160));
}

// Convolutions stay in float16, and what picks codes in float32.
TEST(CodecFiles, AreConverted) {
  const std::string path = testing::TempDir() + "/converted-codec.gguf";
  const std::vector<float> want = ten_frames(codec_gguf);
  convert_model(open_model(codec_folder), path, "f16");
  EXPECT_EQ(ten_frames(path), want);
  convert_model(open_model(codec_folder), path, "q8_0");
  const ModelFile file = open_model(path);
  EXPECT_EQ(file.find("codec.dec.xfmr.blk.0.attn_q_w")->type, DType::q8_0);
  EXPECT_EQ(file.find("codec.dec.in_conv_w")->type, DType::f16);
  EXPECT_EQ(file.find("codec.dec.rvq_rest.3.codebook")->type, DType::f32);
  EXPECT_EQ(file.find("codec.enc.rvq.ac.3.cb")->type, DType::f32);
  EXPECT_GE(distance_of(want, ten_frames(path), want.size()).worst_cosine, 0.99);
  std::filesystem::remove(path);
}

TEST(CodecFiles, WithoutAnEncoderDecode) {
  ModelFile file = open_model(codec_gguf);
  std::erase_if(file.tensors, [](const StoredTensor& t) { return t.name.starts_with("codec.enc."); });
  EXPECT_FALSE(CodecEncoder::is_in(file));
  const Weights weights(file);
  const CodecDecoder decoder(file, weights);
  EXPECT_EQ(decoder.samples_per_frame, 1920);
  EXPECT_TRUE(weights.unused().empty());
}

}  // namespace
}  // namespace consonant
