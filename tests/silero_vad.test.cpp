// SPDX-License-Identifier: Apache-2.0
// Silero VAD's graph: of random weights against a naive computation in float64, of the real weights against what the
// Python package makes of them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "audio/read.hpp"
#include "engine/vad_runner.hpp"
#include "formats/convert.hpp"
#include "formats/safetensors.hpp"
#include "tests/golden.hpp"

namespace consonant {
namespace {

RunnerOptions on(DeviceKind device, int threads = 2) {
  RunnerOptions options;
  options.device = device, options.threads = threads;
  return options;
}

using Numbers = std::vector<double>;

// A model with the sizes of the real one, and what it computes.
class Naive {
 public:
  Naive() {
    add("stft_conv.weight", {258, 1, 256}, 0.05);
    const std::array<int64_t, 5> channels = {129, 128, 64, 64, 128};
    for (size_t i = 0; i < 4; ++i) {
      const std::string name = "conv" + std::to_string(i + 1);
      add(name + ".weight", {channels[i + 1], channels[i], 3}, 1 / std::sqrt(3.0 * double(channels[i])));
      add(name + ".bias", {channels[i + 1]}, 0.1);
    }
    add("lstm_cell.weight_ih", {512, 128}, 0.2), add("lstm_cell.bias_ih", {512}, 0.3);
    add("lstm_cell.weight_hh", {512, 128}, 0.2), add("lstm_cell.bias_hh", {512}, 0.3);
    add("final_conv.weight", {1, 128, 1}, 0.4), add("final_conv.bias", {1}, 0.3);
  }

  void write(const std::string& path) const { write_safetensors(path, tensors_); }

  std::vector<float> probabilities(const std::vector<float>& samples) const {
    Numbers h(128), c(128), context(64);
    std::vector<float> out;
    for (size_t at = 0; at < samples.size(); at += 512) {
      Numbers x = context;
      x.insert(x.end(), samples.begin() + std::ptrdiff_t(at), samples.begin() + std::ptrdiff_t(at) + 512);
      context.assign(x.end() - 64, x.end());
      for (size_t i = 0; i < 64; ++i) x.push_back(x[574 - i]);  // mirrored at the last of 576
      out.push_back(float(window(x, h, c)));
    }
    return out;
  }

 private:
  void add(const std::string& name, const Sizes& sizes, double spread) {
    HostTensor t = HostTensor::allocate(DType::f32, sizes);
    std::normal_distribution<float> normal(0, float(spread));
    Numbers& numbers = numbers_[name];
    for (int64_t i = 0; i < t.count(); ++i) {
      const float x = normal(random_);
      numbers.push_back(x);
      std::memcpy(t.mutable_bytes().data() + i * 4, &x, 4);
    }
    tensors_.push_back({name, t});
  }

  // x [input][time] -> [output][time]
  static std::vector<Numbers> convolve(const std::vector<Numbers>& x, const Numbers& w, const Numbers* bias,
                                       int64_t kernel, int64_t stride, int64_t padding) {
    const auto inputs = int64_t(x.size()), time = int64_t(x[0].size()), outputs = int64_t(w.size()) / inputs / kernel;
    std::vector<Numbers> y(size_t(outputs), Numbers{});
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t t = -padding; t + kernel <= time + padding; t += stride) {
        double sum = bias ? (*bias)[size_t(o)] : 0;
        for (int64_t i = 0; i < inputs; ++i)
          for (int64_t k = 0; k < kernel; ++k)
            if (t + k >= 0 && t + k < time)
              sum += w[size_t((o * inputs + i) * kernel + k)] * x[size_t(i)][size_t(t + k)];
        y[size_t(o)].push_back(sum);
      }
    return y;
  }

  static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

  double window(const Numbers& samples, Numbers& h, Numbers& c) const {
    const auto parts = convolve({samples}, numbers_.at("stft_conv.weight"), nullptr, 256, 128, 0);
    std::vector<Numbers> x(129, Numbers(4));
    for (size_t f = 0; f < 129; ++f)
      for (size_t t = 0; t < 4; ++t) x[f][t] = std::hypot(parts[f][t], parts[129 + f][t]);
    for (const auto& [name, stride] : {std::pair{"conv1", 1}, {"conv2", 2}, {"conv3", 2}, {"conv4", 1}}) {
      const std::string n = name;
      x = convolve(x, numbers_.at(n + ".weight"), &numbers_.at(n + ".bias"), 3, stride, 1);
      for (Numbers& row : x)
        for (double& v : row) v = std::max(v, 0.0);
    }
    Numbers gates = numbers_.at("lstm_cell.bias_ih");
    const Numbers &wi = numbers_.at("lstm_cell.weight_ih"), &wh = numbers_.at("lstm_cell.weight_hh"),
                  &bh = numbers_.at("lstm_cell.bias_hh"), &w = numbers_.at("final_conv.weight");
    for (size_t r = 0; r < 512; ++r) {
      gates[r] += bh[r];
      for (size_t k = 0; k < 128; ++k) gates[r] += wi[r * 128 + k] * x[k][0] + wh[r * 128 + k] * h[k];
    }
    double sum = numbers_.at("final_conv.bias")[0];
    for (size_t j = 0; j < 128; ++j) {
      c[j] = logistic(gates[128 + j]) * c[j] + logistic(gates[j]) * std::tanh(gates[256 + j]);
      h[j] = logistic(gates[384 + j]) * std::tanh(c[j]);
      sum += w[j] * std::max(h[j], 0.0);
    }
    return logistic(sum);
  }

  std::mt19937 random_{5};
  std::vector<NamedTensor> tensors_;
  std::map<std::string, Numbers> numbers_;
};

struct RandomSilero : testing::Test {
  void SetUp() override {
    path = testing::TempDir() + "/random_silero." + testing::UnitTest::GetInstance()->current_test_info()->name();
    naive.write(path);
    std::mt19937 random(6);
    std::normal_distribution<float> normal(0, 0.3f);
    samples.resize(100 * 512);
    for (float& x : samples) x = normal(random);
  }
  void TearDown() override { std::filesystem::remove(path); }

  Naive naive;
  std::string path;
  std::vector<float> samples;
};

TEST_F(RandomSilero, ComputesWhatItsEquationsSay) {
  const std::vector<float> want = naive.probabilities(samples);
  const auto [least, most] = std::minmax_element(want.begin(), want.end());
  ASSERT_GT(*most - *least, 0.1f);  // the weights let the sound be heard
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::reference}) {
    VadEngine engine(path, on(device));
    const auto got = engine.runner().listen(samples);
    EXPECT_LE(distance_of(want, got, want.size()).max_abs, 1e-5) << name(device);
  }
}

// How many windows a step has, and the number of threads, change no bit.
TEST_F(RandomSilero, DoesntDependOnTheCutOfTheSound) {
  VadEngine engine(path, on(DeviceKind::cpu));
  const auto want = engine.runner().listen(samples);
  ASSERT_EQ(want.size(), 100u);
  for (const int threads : {1, 3})
    for (const size_t windows : {1, 3, 64, 99}) {
      VadEngine other(path, on(DeviceKind::cpu, threads));
      std::vector<float> got;
      for (size_t at = 0; at < 100; at += windows) {
        const auto part = std::span(samples).subspan(at * 512, std::min<size_t>(windows, 100 - at) * 512);
        const auto more = other.runner().listen(part);
        got.insert(got.end(), more.begin(), more.end());
      }
      EXPECT_EQ(got, want) << windows << " windows, " << threads << " threads";
    }
}

TEST_F(RandomSilero, ForgetsWhenAskedTo) {
  VadEngine engine(path, on(DeviceKind::cpu));
  const auto first = engine.runner().listen(samples), second = engine.runner().listen(samples);
  EXPECT_NE(first, second);
  engine.runner().reset();
  EXPECT_EQ(engine.runner().listen(samples), first);
}

TEST_F(RandomSilero, IsTheSameAsGguf) {
  const std::string gguf = path + ".gguf";
  convert_model(open_model(path), gguf, "f32");
  VadEngine engine(path, on(DeviceKind::cpu)), converted(gguf, on(DeviceKind::cpu));
  EXPECT_EQ(converted.runner().listen(samples), engine.runner().listen(samples));
  std::filesystem::remove(gguf);
}

TEST(SileroVad, RefusesAModelOfAnotherKind) {
  try {
    VadEngine engine(CONSONANT_TEST_DATA "/asr/tiny-random-whisper", on(DeviceKind::cpu));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit(), Exit::input);
    EXPECT_NE(std::string(error.what()).find("the architecture 'whisper' doesn't find speech"), std::string::npos);
  }
}

std::vector<float> clip(const std::string& name, double seconds) {
  ReadSettings settings;
  settings.duration = seconds;
  const auto source = read_audio(CONSONANT_TEST_DATA "/audio/" + name, settings);
  std::vector<float> samples(size_t(source->length()));
  samples.resize(size_t(source->read(samples)));
  samples.resize((samples.size() + 511) / 512 * 512);
  return samples;
}

// The package has two sets of weights; `golden` names the one.
void expect_golden(const std::string& weights, const std::string& golden) {
  const std::string path = CONSONANT_MODELS "/silero-vad/" + weights;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " isn't there";
  const Golden file(CONSONANT_TEST_DATA "/vad/golden.safetensors");
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::reference}) {
    VadEngine engine(path, on(device));
    for (const auto& [name, seconds] : {std::pair{"jfk.wav", -1},
                                        {"two_cities.flac", 30},
                                        {"silence_10s.wav", -1},
                                        {"noise_white_10s.wav", -1},
                                        {"fr_pangrama.wav", -1}}) {
      if (device == DeviceKind::reference && seconds > 0) continue;  // slow
      const std::vector<float> want = file.floats(golden + "." + name);
      engine.runner().reset();
      const auto got = engine.runner().listen(clip(name, seconds));
      ASSERT_EQ(got.size(), want.size()) << name;
      const double most = distance_of(want, got, want.size()).max_abs;
      EXPECT_LE(most, 1e-5) << name << " on " << consonant::name(device);
      testing::Test::RecordProperty(name, std::to_string(most));
    }
  }
}

TEST(RealSilero, AgreesWithThePackage) { expect_golden("silero_vad_16k.safetensors", "file"); }
TEST(RealSilero, AgreesWithThePackagesNewerWeights) { expect_golden("silero_vad.onnx", "current"); }
TEST(RealSilero, AgreesWithTheNewerWeightsOf16Khz) { expect_golden("silero_vad_16k_op15.onnx", "current"); }

}  // namespace
}  // namespace consonant
