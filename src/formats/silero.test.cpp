// SPDX-License-Identifier: Apache-2.0
#include "formats/silero.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "formats/safetensors.hpp"

namespace consonant {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

HostTensor counting(const Sizes& sizes) {
  HostTensor t = HostTensor::allocate(DType::f32, sizes);
  for (int64_t i = 0; i < t.count(); ++i) {
    const auto x = static_cast<float>(i);
    std::memcpy(t.mutable_bytes().data() + i * 4, &x, 4);
  }
  return t;
}

// Small sizes in the file's layout: spectra of 8 samples, channels 2, 3, 2, 3, state of 2.
std::vector<NamedTensor> small() {
  return {{"stft_conv.weight", counting({10, 1, 8})},
          {"conv1.weight", counting({2, 5, 3})},
          {"conv1.bias", counting({2})},
          {"conv2.weight", counting({3, 2, 3})},
          {"conv2.bias", counting({3})},
          {"conv3.weight", counting({2, 3, 3})},
          {"conv3.bias", counting({2})},
          {"conv4.weight", counting({3, 2, 3})},
          {"conv4.bias", counting({3})},
          {"lstm_cell.weight_ih", counting({8, 3})},
          {"lstm_cell.bias_ih", counting({8})},
          {"lstm_cell.weight_hh", counting({8, 2})},
          {"lstm_cell.bias_hh", counting({8})},
          {"final_conv.weight", counting({1, 2, 1})},
          {"final_conv.bias", counting({1})}};
}

class Silero : public testing::Test {
 protected:
  ModelFile open(const std::vector<NamedTensor>& tensors) {
    write_safetensors(path_, tensors);
    return open_model(path_);
  }
  std::string refusal(const std::vector<NamedTensor>& tensors) {
    try {
      open(tensors);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::input);
      return error.what();
    }
    return "no error";
  }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) /
      (std::string("silero.") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".safetensors");
};

TEST_F(Silero, IsKnownByItsTensors) {
  const ModelFile model = open(small());
  EXPECT_EQ(model.meta->string("general.architecture"), "silero_vad");
  EXPECT_EQ(model.meta->integer("silero_vad.sample_rate"), 16000);
  EXPECT_EQ(model.meta->integer("silero_vad.window"), 512);
  EXPECT_EQ(model.meta->integer("silero_vad.context"), 64);
  EXPECT_EQ(model.meta->integer("silero_vad.embedding_length"), 2);
  EXPECT_EQ(model.tensors.size(), 15u);
  EXPECT_THAT(model.find("stft.weight")->sizes, ElementsAre(10, 8));
  EXPECT_THAT(model.find("enc.0.weight")->sizes, ElementsAre(2, 15));
  EXPECT_THAT(model.find("lstm.input.weight")->sizes, ElementsAre(8, 3));
  EXPECT_THAT(model.find("output.weight")->sizes, ElementsAre(1, 2));
  EXPECT_THAT(model.find("output.bias")->sizes, ElementsAre(1));
}

// [output, input, tap] in the file: tap by tap here.
TEST_F(Silero, PutsTheTapsOfAConvolutionFirst) {
  const ModelFile model = open(small());
  EXPECT_THAT(model.find("enc.1.weight")->load().to_floats(),
              ElementsAre(0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11, 12, 15, 13, 16, 14, 17));
  EXPECT_THAT(model.find("lstm.hidden.bias")->load().to_floats(), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_F(Silero, NamesWhatIsMissingOrOfAnotherShape) {
  auto tensors = small();
  tensors.erase(tensors.begin() + 4);
  EXPECT_THAT(refusal(tensors), HasSubstr("without conv2.bias"));
  tensors = small();
  tensors[1].tensor = counting({2, 15});
  EXPECT_THAT(refusal(tensors), HasSubstr("conv1.weight has sizes [2, 15]; 3 of them were wanted"));
}

TEST_F(Silero, IsNotEverySafetensorsFile) {
  auto tensors = small();
  tensors.erase(tensors.begin());
  EXPECT_THAT(refusal(tensors), HasSubstr("holds tensors alone"));
}

// Protocol buffers by hand: a field is its number and kind, then a number or a length and bytes.
std::string varint(uint64_t n) {
  std::string out;
  for (; n > 127; n >>= 7) out += static_cast<char>(n | 128);
  return out + static_cast<char>(n);
}
std::string field(uint64_t number, uint64_t value) { return varint(number << 3) + varint(value); }
std::string field(uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string tensor_proto(const std::string& name, const HostTensor& t, bool packed_sizes, uint64_t data_field) {
  std::string sizes, out;
  for (const int64_t n : t.sizes) sizes += varint(static_cast<uint64_t>(n));
  if (packed_sizes) {
    out = field(1, sizes);
  } else {
    for (const int64_t n : t.sizes) out += field(1, static_cast<uint64_t>(n));
  }
  const std::string data(reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size());
  return out + field(2, 1) + field(data_field, data) + field(8, name);
}

// The names of the tensors in ONNX, in the order of small().
const std::array<const char*, 15> onnx_names = {
    "stft.forward_basis_buffer",     "encoder.0.reparam_conv.weight", "encoder.0.reparam_conv.bias",
    "encoder.1.reparam_conv.weight", "encoder.1.reparam_conv.bias",   "encoder.2.reparam_conv.weight",
    "encoder.2.reparam_conv.bias",   "encoder.3.reparam_conv.weight", "encoder.3.reparam_conv.bias",
    "decoder.rnn.weight_ih",         "decoder.rnn.bias_ih",           "decoder.rnn.weight_hh",
    "decoder.rnn.bias_hh",           "decoder.decoder.2.weight",      "decoder.decoder.2.bias"};

// Half of the tensors as constants, half as initializers.
std::string graph_proto(const std::string& prefix, float first) {
  std::string graph;
  auto tensors = small();
  const float bias[] = {first};
  std::memcpy(tensors.back().tensor.mutable_bytes().data(), bias, 4);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string name = prefix + onnx_names[i], made = tensor_proto(name, tensors[i].tensor, i % 3 == 0, 9);
    if (i % 2 == 0) {
      graph += field(5, made);
    } else {
      const std::string value = tensor_proto("", tensors[i].tensor, i % 3 == 0, 4);
      graph += field(1, field(2, name) + field(4, std::string("Constant")) +
                            field(5, field(1, std::string("value")) + field(5, value)));
    }
  }
  return graph;
}

class SileroOnnx : public Silero {
 protected:
  ModelFile open_bytes(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return open_model(path_);
  }
};

TEST_F(SileroOnnx, HasTheSameTensors) {
  const ModelFile model = open_bytes(field(1, 8) + field(7, graph_proto("model.", 0)) + field(14, std::string("rest")));
  EXPECT_EQ(model.format, "ONNX");
  const std::filesystem::path other = path_.string() + "2";
  write_safetensors(other, small());
  const ModelFile same = open_model(other);
  ASSERT_EQ(model.tensors.size(), 15u);
  for (size_t i = 0; i < 15; ++i) {
    EXPECT_EQ(model.tensors[i].name, same.tensors[i].name);
    EXPECT_EQ(model.tensors[i].sizes, same.tensors[i].sizes);
    EXPECT_EQ(model.tensors[i].bytes, same.tensors[i].bytes);
    EXPECT_EQ(model.tensors[i].load().to_floats(), same.tensors[i].load().to_floats());
  }
  std::filesystem::remove(other);
}

TEST_F(SileroOnnx, TakesTheBranchOf16Khz) {
  const std::string branches =
      field(5, field(1, std::string("else_branch")) + field(6, graph_proto("If_0_else_branch__", 8))) +
      field(5, field(1, std::string("then_branch")) + field(6, graph_proto("If_0_then_branch__", 16)));
  const ModelFile model = open_bytes(field(1, 8) + field(7, field(1, field(2, std::string("out")) + branches)));
  EXPECT_THAT(model.find("output.bias")->load().to_floats(), ElementsAre(16));
}

TEST_F(SileroOnnx, CutShortAnywhereIsBadInput) {
  const std::string whole = field(1, 8) + field(7, graph_proto("model.", 0));
  size_t refused = 0;
  for (size_t length = 1; length < whole.size(); length += 7) {
    try {
      open_bytes(whole.substr(0, length));
    } catch (const Error& error) {
      EXPECT_EQ(error.exit(), Exit::input);
      ++refused;
    }
  }
  EXPECT_EQ(refused, (whole.size() + 5) / 7);
}

}  // namespace
}  // namespace consonant
