// SPDX-License-Identifier: Apache-2.0
// Whisper's graphs against the goldens of the reference implementation.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/whisper_golden.hpp"

namespace consonant {
namespace {

const std::string tiny = asr_data + "tiny-random-whisper";

std::vector<float> transposed(const std::vector<float>& x, size_t rows, size_t columns) {
  std::vector<float> y(x.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < columns; ++c) y[c * rows + r] = x[r * columns + c];
  return y;
}

// A node's name beside the golden that it must equal.
std::vector<std::pair<std::string, std::string>> node_names() {
  std::vector<std::pair<std::string, std::string>> names = {{"enc/layer_norm(enc.output_norm)", "enc.hidden.2"}};
  for (const std::string i : {"0", "1"}) {
    names.insert(names.end(),
                 {{"enc/blk." + i + "/layer_norm(attn_norm)", "enc." + i + ".self_attn_layer_norm"},
                  {"enc/blk." + i + "/layer_norm(ffn_norm)", "enc." + i + ".final_layer_norm"},
                  {"dec/blk." + i + "/layer_norm(attn_norm)", "dec." + i + ".self_attn_layer_norm"},
                  {"dec/blk." + i + "/layer_norm(cross_attn_norm)", "dec." + i + ".encoder_attn_layer_norm"},
                  {"dec/blk." + i + "/layer_norm(ffn_norm)", "dec." + i + ".final_layer_norm"}});
  }
  return names;
}

class TinyWhisper : public testing::TestWithParam<DeviceKind> {};

TEST_P(TinyWhisper, AgreesWithTheReference) {
  const Golden golden(tiny + "/golden.safetensors");
  LoadedWhisper tiny_model(tiny, exact(GetParam()));
  WhisperRunner& runner = *tiny_model.runner;
  const int window = runner.encode_features(transposed(golden.floats("mel"), 80, 100));
  const Distance encoded = distance_of(golden.floats("enc.hidden.2"), runner.encoded(), 64);
  EXPECT_LE(encoded.max_abs, 1e-4);
  EXPECT_GE(encoded.worst_cosine, 1 - 1e-6);

  const auto ids = golden.ids("decoder_ids");
  const WindowModel::Piece piece{runner.open(window), ids, static_cast<int64_t>(ids.size())};
  const Distance d = distance_of(golden.floats("logits"), runner.evaluate({&piece, 1}), 600);
  EXPECT_LE(d.max_abs, 1e-4);
  EXPECT_GE(d.worst_cosine, 1 - 1e-6);
}

// The goldens of the decoder's nodes are those of the greedy run: all its tokens but the last.
TEST_P(TinyWhisper, AgreesWithTheReferenceAtEveryNorm) {
  const Golden golden(tiny + "/golden.safetensors");
  LoadedWhisper tiny_model(tiny, exact(GetParam()));
  WhisperRunner& runner = *tiny_model.runner;
  runner.watch({"*/layer_norm(*"});
  const int window = runner.encode_features(transposed(golden.floats("mel"), 80, 100));
  const auto ids = golden.ids("greedy_ids");
  const WindowModel::Piece piece{runner.open(window), std::span(ids).first(ids.size() - 1), 1};
  runner.evaluate({&piece, 1});
  const auto taps = runner.take_taps();
  EXPECT_EQ(taps.size(), node_names().size() + 1);  // and the decoder's last, of the wanted row alone
  for (const auto& [node, wanted] : node_names()) {
    const auto tap = std::find_if(taps.begin(), taps.end(), [&, name = node](const auto& t) { return t.name == name; });
    ASSERT_NE(tap, taps.end()) << node;
    EXPECT_LE(distance_of(golden.floats(wanted), tap->rows, 64).max_abs, 1e-4) << node;
  }
}

TEST_P(TinyWhisper, WritesTheReferencesTokens) {
  const Golden golden(tiny + "/golden.safetensors");
  LoadedWhisper tiny_model(tiny, exact(GetParam()));
  WhisperRunner& runner = *tiny_model.runner;
  const int sequence = runner.open(runner.encode_features(transposed(golden.floats("mel"), 80, 100)));
  const auto wanted = golden.ids("greedy_ids");
  std::vector<int32_t> written = {wanted[0]};
  while (written.size() < wanted.size()) {
    const WindowModel::Piece piece{sequence, std::span(written).last(1), 1};
    const auto logits = runner.evaluate({&piece, 1});
    written.push_back(static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  EXPECT_EQ(written, wanted);
}

TEST_P(TinyWhisper, AlignsAsTheReferencesCrossAttention) {
  const Golden golden(tiny + "/golden.safetensors");
  LoadedWhisper tiny_model(tiny, exact(GetParam()));
  WhisperRunner& runner = *tiny_model.runner;
  const int window = runner.encode_features(transposed(golden.floats("mel"), 80, 100));
  const auto ids = golden.ids("decoder_ids");
  const auto alignment = runner.align(window, ids, 600);
  // Without a list of heads: those of the upper half of the layers, which is the second of two.
  EXPECT_EQ(alignment.heads, 4);
  EXPECT_EQ(alignment.positions, 50);
  EXPECT_LE(distance_of(golden.floats("dec.1.cross_attention"), alignment.weights, 50).max_abs, 1e-5);
  const auto logits = golden.floats("logits");
  double sum = 0;
  for (size_t i = 0; i < 600; ++i) sum += std::exp(double{logits[i]});
  EXPECT_NEAR(alignment.probability[0], std::exp(double{logits[static_cast<size_t>(ids[1])]}) / sum, 1e-5);
  EXPECT_EQ(alignment.probability.back(), 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, TinyWhisper, testing::Values(DeviceKind::cpu, DeviceKind::reference),
                         [](const auto& info) { return std::string(name(info.param)); });

// The number of threads, the neighbours in a batch, the cut of a prompt, and a fork change no bit.
TEST(WhisperSteps, DontDependOnWhatSharesThem) {
  const Golden golden(tiny + "/golden.safetensors");
  const auto features = transposed(golden.floats("mel"), 80, 100);
  const auto ids = golden.ids("decoder_ids");
  for (const DType kv : {DType::f32, DType::f16, DType::q8_0}) {
    if (kv == DType::q8_0) continue;  // heads of 16
    std::vector<float> wanted;
    for (const int threads : {1, 2, 3}) {
      RunnerOptions options = exact(DeviceKind::cpu, threads);
      options.kv = kv;
      LoadedWhisper tiny_model(tiny, options, 3);
      WhisperRunner& runner = *tiny_model.runner;
      std::vector<float> louder = features;
      for (float& x : louder) x *= 1.5f;
      const int other = runner.encode_features(louder), window = runner.encode_features(features);
      const auto count = static_cast<int64_t>(ids.size());
      const int whole = runner.open(window);
      const WindowModel::Piece alone{whole, ids, count};
      const auto first = runner.evaluate({&alone, 1});
      if (wanted.empty()) wanted.assign(first.begin(), first.end());
      EXPECT_TRUE(std::equal(first.begin(), first.end(), wanted.begin(), wanted.end())) << threads << " threads";

      // In two parts, between a sequence of another window and one of the same, and continued by a fork.
      const int cut = runner.open(window), beside = runner.open(other), twin = runner.open(window);
      const auto head = std::span(ids).first(5), tail = std::span(ids).subspan(5);
      const WindowModel::Piece parts[] = {{beside, std::span(ids).last(3), 1}, {cut, head, 5}, {twin, tail, 2}};
      const auto some = runner.evaluate(parts);
      EXPECT_TRUE(std::equal(wanted.begin(), wanted.begin() + 5 * 600, some.begin() + 600)) << threads;
      const int fork = runner.fork(cut);
      const WindowModel::Piece more[] = {{cut, std::span(ids).first(1), 1}, {fork, tail, count - 5}};
      const auto rest = runner.evaluate(more);
      EXPECT_TRUE(std::equal(wanted.begin() + 5 * 600, wanted.end(), rest.begin() + 600, rest.end())) << threads;
      // The fork kept nothing of what its parent read after it.
      const WindowModel::Piece again{cut, std::span(ids).subspan(6), 1};
      runner.evaluate({&again, 1});
      for (const int sequence : {whole, cut, beside, twin, fork}) runner.close(sequence);
    }
  }
}

TEST(WhisperSteps, RefuseWhatDoesntFit) {
  LoadedWhisper tiny_model(tiny, exact());
  WhisperRunner& runner = *tiny_model.runner;
  const int sequence = runner.open(runner.encode_features(std::vector<float>(8000)));
  const std::vector<int32_t> unknown = {600}, many(65, 1);
  const WindowModel::Piece bad{sequence, unknown, 1}, long_one{sequence, many, 1};
  EXPECT_THROW(runner.evaluate({&bad, 1}), Error);
  EXPECT_THROW(runner.evaluate({&long_one, 1}), Error);
  EXPECT_THROW(runner.encode_features(std::vector<float>(7999)), Error);
  EXPECT_THROW(runner.align(0, many, 600), Error);
}

}  // namespace
}  // namespace consonant
